import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRESS } from '../../projections/projector';
import type { App } from '../../src/app/app';
import { condition } from '../../src/async/clock';
import { buildFirst } from '../../src/projecting/rebuild';
import { saysHowFar } from '../support/campaign';
import { freshFolder } from '../support/folders';
import { freePort } from '../support/free-port';
import { mongodbUrl } from '../support/mongodb/databases';
import { openAppIn } from '../support/profile';
import { seed } from '../support/property';
import { randomFrom } from '../support/random';
import { serviceProcess, type ServiceProcess } from '../support/service';
import { newService } from '../support/services';

/**
 * Clients write, and services report facts, while the server is killed again and again. Every acknowledged write must be in the log exactly once,
 * every other at most once, and once each client has repeated its unanswered requests, all of them exactly once.
 */
interface Campaign {
  readonly kills: number;
  readonly clients: number;
  /** How long the whole campaign may take. */
  readonly seconds: number;
}

/** The settings of the stores. */
type Log = Readonly<Record<string, string>>;

interface Outcome {
  readonly acknowledged: number;
  readonly unanswered: number;
  /** Acknowledged writes that are missing, and any that are there twice: must be empty. */
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  /** Writes that are not in the log exactly once after every unanswered one was repeated: must be empty. */
  readonly unsettled: readonly string[];
  /** From each start to ready, in milliseconds. */
  readonly readyAfterMs: readonly number[];
  /** Documents of the live read models, and of a fresh build from a copy of the log. */
  readonly live: readonly unknown[];
  readonly rebuilt: readonly unknown[];
}

interface Write {
  readonly names: readonly string[];
  /** True: acknowledged. False: no response, or one that leaves the outcome open. Any other response is a failure. */
  readonly send: () => Promise<boolean>;
}

interface Sent extends Required<Pick<RequestInit, 'method' | 'body'>> {
  readonly headers: Readonly<Record<string, string>>;
}

/** Whether an answer says that everything is done, or that it is to be sent again; anything else is undefined. */
type Judge = (body: unknown) => boolean | undefined;

const sending = async (url: string, sent: Sent, isDone: Judge): Promise<boolean> => {
  const asked = async () => {
    const response = await fetch(url, { ...sent, signal: AbortSignal.timeout(10_000) });
    return { status: response.status, body: await response.text() };
  };
  const answer = await asked().catch(() => undefined);
  if (answer === undefined || answer.status === 503 || answer.status === 409) return false;
  const done = answer.status === 200 ? isDone(JSON.parse(answer.body)) : undefined;
  if (done !== undefined) return done;
  throw new Error(`${sent.method} was answered with ${answer.status}: ${answer.body}`);
};

const changeOf = (url: string, key: string, name: string): Write => {
  const idempotency = { 'SVC-IDEMPOTENCY-KEY': randomUUID(), 'Content-Type': 'application/json' };
  const headers = { 'SVC-API-KEY': key, ...idempotency };
  const sent = { method: 'PUT', headers, body: JSON.stringify({ name }) };
  const isDone: Judge = (body) => (body as { readonly name: string }).name === name || undefined;
  return { names: [name], send: () => sending(`${url}/tenants/self`, sent, isDone) };
};

const FACTS = 20;

interface Reported {
  readonly accepted: number;
  readonly already_there: number;
  /** A tenant that was not loaded in time is tried again. */
  readonly refused: readonly { readonly retry: boolean }[];
}

const factsOf = (url: string, key: string, tenant_id: string): Write => {
  const ids = Array.from({ length: FACTS }, () => randomUUID());
  const lines = ids.map((id) => ({ id, tenant_id, type: 'TokenUsed', data: { entityId: id } }));
  const headers = { 'SVC-API-KEY': key, 'Content-Type': 'application/x-ndjson' };
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const isDone: Judge = (answer) => {
    const { accepted, already_there, refused } = answer as Reported;
    if (refused.length === 0) return accepted + already_there === FACTS || undefined;
    return refused.every(({ retry }) => retry) ? false : undefined;
  };
  const send = () => sending(`${url}/facts`, { method: 'POST', headers, body }, isDone);
  return { names: ids, send: async () => (await Promise.all([send(), send()])).some(Boolean) };
};

const newReporter = (folder: string, log: Log): Promise<string> =>
  withApp(folder, log, async (app) => (await newService(app, 'facts')).key);

/** How often each name was written, according to the log itself. */
const writtenNames = async (folder: string, log: Log): Promise<ReadonlyMap<string, number>> =>
  withApp(folder, log, async (app) => {
    const counts = new Map<string, number>();
    for await (const batch of app.log.readAll())
      for (const { id, type, data } of batch) {
        const name = type === 'TokenUsed' ? id : (data as { readonly name: string }).name;
        if (type === 'TenantUpdated' || type === 'TokenUsed') counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    return counts;
  });

const withApp = async <T>(folder: string, log: Log, work: (app: App) => Promise<T>): Promise<T> => {
  const app = await openAppIn(folder, log);
  try {
    // A command builds them only of a small log.
    if ((await app.readModels.live()) === undefined) await buildFirst(app);
    const head = await app.log.head();
    if (head !== undefined) await app.catchUp(head.position, 10_000);
    return await work(app);
  } finally {
    await app.close();
  }
};

/** Every document of every collection, and what the progress of each tenant carries: the hashes of its tree. */
const allDocuments = (folder: string, log: Log): Promise<readonly unknown[]> =>
  withApp(folder, log, async ({ live, projector }) => {
    const found: unknown[] = [];
    const { set } = await live.look();
    for (const { name } of [...projector.collections, PROGRESS])
      for (const row of await set.scan(name, 100_000)) found.push({ collection: name, ...row });
    return found;
  });

/** Builds read models from scratch from a copy of the log. */
const rebuiltDocuments = async (folder: string, log: Log): Promise<readonly unknown[]> => {
  const copy = freshFolder();
  for (const file of ['events.db', 'events.db-wal'])
    if (existsSync(join(folder, file))) copyFileSync(join(folder, file), join(copy, file));
  const isShared = (log['MONGODB_URL'] ?? '') !== '';
  return allDocuments(copy, isShared ? { ...log, MONGODB_URL: mongodbUrl(copy) } : log);
};

export const crashCampaign = async (
  { kills, clients, seconds }: Campaign,
  folder: string,
  log: Log,
): Promise<Outcome> => {
  const random = randomFrom(seed);
  const saysDone = saysHowFar('kills', kills);
  const ports = { PORT: await freePort(), OPS_PORT: await freePort() };
  const env = { DATA_DIR: folder, ...ports, LOG_LEVEL: 'info', ...log };
  const url = `http://127.0.0.1:${env.PORT}`;
  const readyAfterMs: number[] = [];
  const timedStart = async (): Promise<ServiceProcess> => {
    const startedAt = performance.now();
    const victim = await serviceProcess(env);
    readyAfterMs.push(Math.round(performance.now() - startedAt));
    return victim;
  };

  let victim = await timedStart();
  const { key } = victim;
  const own = await fetch(`${url}/tenants/self`, { headers: { 'SVC-API-KEY': key } });
  const { id: tenantId } = (await own.json()) as { readonly id: string };
  const reporter = await newReporter(folder, log);
  const acknowledged = new Set<string>();
  const unanswered = new Map<string, Write>();
  let ending = false;
  let [number, answered] = [0, 0];
  let up = Promise.resolve();
  const acknowledgement = condition();

  const client = async (next: () => Write): Promise<void> => {
    while (!ending) {
      await up;
      const write = next();
      const isAcknowledged = await write.send();
      if (!isAcknowledged) for (const name of write.names) unanswered.set(name, write);
      else for (const name of write.names) acknowledged.add(name);
      if (isAcknowledged) answered += 1;
      acknowledgement.notify();
    }
  };
  const nextChange = (id: number) => () => changeOf(url, key, `client ${id} write ${(number += 1)}`);
  const nextFacts = () => factsOf(url, reporter, tenantId);

  const acknowledgedReach = async (count: number): Promise<void> => {
    while (answered < count) await acknowledgement.wait();
  };
  const killing = async (): Promise<void> => {
    const end = performance.now() + seconds * 1_000;
    for (let kill = 0; kill < kills && performance.now() < end; kill += 1) {
      const moment = answered + 1 + Math.floor(random() * clients * 4);
      await acknowledgedReach(moment);
      let isUp = (): void => undefined;
      up = new Promise((resolve) => (isUp = resolve));
      await victim.kill();
      victim = await timedStart();
      isUp();
      saysDone(kill + 1);
    }
    ending = true;
  };
  const writers = Array.from({ length: clients }, (_, id) => client(nextChange(id)));
  await Promise.all([killing(), ...writers, client(nextFacts), client(nextFacts)]);
  await victim.kill();

  const before = await writtenNames(folder, log);
  victim = await timedStart();
  const end = performance.now() + seconds * 1_000;
  const open = [...new Set(unanswered.values())];
  const repeating = async (): Promise<void> => {
    for (let write = open.shift(); write !== undefined; write = open.shift())
      while (!(await write.send()))
        if (performance.now() > end) throw new Error(`${write.names[0]} was not answered.`);
  };
  await Promise.all(Array.from({ length: clients }, repeating));
  await victim.kill();

  const after = await writtenNames(folder, log);
  const all = [...acknowledged, ...unanswered.keys()];
  return {
    acknowledged: acknowledged.size,
    unanswered: unanswered.size,
    lost: [...acknowledged].filter((name) => !before.has(name)),
    doubled: [...before].flatMap(([name, count]) => (count === 1 ? [] : [name])),
    unsettled: all.filter((name) => after.get(name) !== 1),
    readyAfterMs,
    live: await allDocuments(folder, log),
    rebuilt: await rebuiltDocuments(folder, log),
  };
};
