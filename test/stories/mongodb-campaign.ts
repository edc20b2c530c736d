import { MongoClient } from 'mongodb';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApp, type App } from '../../src/app/app';
import { monotonicMs, pause } from '../../src/async/clock';
import { readConfiguration } from '../../src/configuration';
import { standInProcess } from '../support/event-store/own-process';
import { freePort } from '../support/free-port';
import { findMongod, HOW_TO_GET_IT } from '../support/mongodb/mongod';
import { startReplicaSet } from '../support/mongodb/replica-set';
import { faultsOf, membersOf, type Fault } from '../support/mongodb/set-faults';
import { operatorOf } from '../support/operator-of';
import { ingestThrough, isWhole, type Finished, type Ingested } from './mongodb-ingest';

/**
 * `npm run campaign -- mongodb [KILLS]`: three instances serve and project on one replica set of three, while its members
 * are killed, frozen and rolled back, facts are ingested, and read models are damaged. Every acknowledged write and every
 * fact must be there once, and no read may be older than a write that was acknowledged before it.
 */
const KILLS = Number(process.argv[2] ?? 20);
const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
const WRITERS = 4;
const RECOVERY_MS = 120_000;
const SHOWN_AFTER = 'all instances show new writes after, ms';

type Environment = Readonly<Record<string, string>>;

interface Instance {
  readonly url: string;
  readonly process: ChildProcess;
}

const startInstance = async (env: Environment): Promise<Instance> => {
  const [port, opsPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    env: { PATH: process.env['PATH'], ...env, PORT: port, OPS_PORT: opsPort },
    stdio: 'ignore',
  });
  const isReady = () =>
    fetch(`http://127.0.0.1:${opsPort}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`An instance ended with code ${child.exitCode}.`);
    await pause(100);
  }
  return { url: `http://127.0.0.1:${port}`, process: child };
};

const command = (env: Environment, ...args: readonly string[]): Promise<Finished> =>
  new Promise((resolve) => {
    const all = { env: { PATH: process.env['PATH'], ...env } };
    execFile(process.execPath, [MAIN, ...args], all, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });

const newCustomer = async (app: App): Promise<Customer> => {
  const { newTenant, newOwner } = operatorOf(app);
  const tenantId = await newTenant();
  return { tenantId, key: (await newOwner(tenantId)).key };
};

interface Customer {
  readonly tenantId: string;
  readonly key: string;
}

interface Answer {
  readonly status: number;
  readonly name?: string;
  readonly isPending: boolean;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const ask = async (url: string, key: string, init: Asked = {}): Promise<Answer> => {
  const headers = { 'SVC-API-KEY': key, 'Content-Type': 'application/json', ...init.headers };
  const response = await fetch(`${url}/tenants/self`, {
    ...init,
    headers,
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined);
  if (response === undefined) return { status: 0, isPending: false };
  const { name } = (await response.json().catch(() => ({}))) as { name?: string };
  const isPending = response.headers.has('svc-read-pending');
  return { status: response.status, isPending, ...(name === undefined ? {} : { name }) };
};

interface Seen {
  readonly acknowledged: string[];
  reads: number;
  unavailable: number;
  readonly wrong: string[];
}

/** Writes on one instance, and reads on another what was acknowledged. */
const customer = async (
  instances: readonly Instance[],
  key: string,
  label: string,
  seen: Seen,
  isOver: () => boolean,
): Promise<void> => {
  const any = (): string => instances[Math.floor(Math.random() * instances.length)]!.url;
  for (let i = 0; !isOver(); i += 1) {
    const name = `${label} ${i}`;
    const headers = { 'SVC-IDEMPOTENCY-KEY': randomUUID() };
    const write = { method: 'PUT', headers, body: JSON.stringify({ name }) };
    let answer = await ask(any(), key, write);
    // Repeated until it is acknowledged, also after the end, so that its outcome is known.
    while (answer.status !== 200) {
      if (![0, 409, 503].includes(answer.status)) seen.wrong.push(`PUT ${name}: ${answer.status}`);
      await pause(50);
      answer = await ask(any(), key, write);
    }
    seen.acknowledged.push(name);
    if (answer.isPending) continue;
    const read = await ask(any(), key);
    seen.reads += 1;
    if (read.status === 503) seen.unavailable += 1;
    else if (read.name !== name) seen.wrong.push(`GET after ${name}: ${read.status} ${read.name}`);
  }
};

/** How long it takes until every instance shows a new write, without a pending one. */
const recovered = async (instances: readonly Instance[], key: string, startedAt: number): Promise<number> => {
  for (const { url } of instances)
    for (;;) {
      if (monotonicMs() - startedAt > RECOVERY_MS) throw new Error('The instances did not recover.');
      const name = randomUUID();
      const written = await ask(url, key, { method: 'PUT', body: JSON.stringify({ name }) });
      const isShown = written.status === 200 && !written.isPending && (await ask(url, key)).name === name;
      if (isShown) break;
      await pause(50);
    }
  return Math.round(monotonicMs() - startedAt);
};

/** Damages the rows of the log in every set; returns the exit codes of verify, rebuild, and verify again. */
const damaged = async (client: MongoClient, env: Environment, damage: 'drop' | 'alter') => {
  const db = client.db('ledger');
  const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name);
  const rows = names.filter((name) => name.startsWith('log_rows_')).toSorted();
  for (const name of rows)
    if (damage === 'drop') await db.dropCollection(name);
    else
      await db.collection(name).updateOne({ doc: { $exists: true } }, { $set: { 'doc.message': 'altered' } });
  const codes: number[] = [];
  // A rebuild that differs from what is live is switched to only when told so.
  for (const line of ['verify', 'rebuild --accept-differences', 'verify'])
    codes.push((await command(env, 'projections', ...line.split(' '))).code);
  return codes;
};

const timesWritten = async ({ log }: App): Promise<ReadonlyMap<string, number>> => {
  const counts = new Map<string, number>();
  for await (const batch of log.readAll())
    for (const { type, data } of batch) {
      const { name } = data as { name: string };
      if (type === 'TenantUpdated') counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  return counts;
};

const main = async (): Promise<void> => {
  const mongod = await findMongod();
  if (mongod === undefined) throw new Error(`There is no MongoDB. ${HOW_TO_GET_IT}`);
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-mongodb-'));
  const set = await startReplicaSet(mongod, 3, 5_000);
  // Not a URL to Node: it has several hosts.
  const url = set.url.replace('/?', '/ledger?');
  const eventStore = await standInProcess();
  const env = {
    DATA_DIR: folder,
    EVENTSTORE_URL: eventStore.url,
    MONGODB_URL: url,
    RATE_LIMITS: 'off',
    DEMO: 'false',
  };
  const client = new MongoClient(set.url, { serverSelectionTimeoutMS: 1_000 });
  const instances: Instance[] = [];
  for (let i = 0; i < 3; i += 1) instances.push(await startInstance(env));
  // They create the read models.
  const app = await openApp(readConfiguration(env), () => undefined);
  process.once('exit', () => instances.forEach((instance) => instance.process.kill('SIGKILL')));
  const keys: string[] = [];
  for (let i = 0; i <= WRITERS; i += 1) keys.push((await newCustomer(app)).key);
  const [witness = '', ...writers] = keys;

  const seen: Seen = { acknowledged: [], reads: 0, unavailable: 0, wrong: [] };
  let isOver = false;
  const running = writers.map((key, at) => customer(instances, key, `Writer ${at}`, seen, () => isOver));
  const recovery: Record<string, unknown>[] = [];
  const { areHealthy } = membersOf(client, set);
  const suffer = async ([name, happen]: Fault): Promise<number> => {
    console.error(`${name} …`);
    const startedAt = monotonicMs();
    const end = await happen();
    const ms = await recovered(instances, witness, startedAt);
    await end();
    await areHealthy();
    return ms;
  };
  const faults = faultsOf(client, set);
  for (const fault of faults) recovery.push({ fault: fault[0], [SHOWN_AFTER]: await suffer(fault) });
  const kills: number[] = [];
  for (let i = 0; i < KILLS; i += 1) {
    await pause(Math.random() * 500);
    kills.push(await suffer(faults[0]!));
  }
  recovery.push({
    fault: `${faults[0]![0]}, ${KILLS} times`,
    [SHOWN_AFTER]: `${Math.min(...kills)} to ${Math.max(...kills)}`,
  });
  isOver = true;
  await Promise.all(running);

  const ingested: Ingested[] = [];
  for (const fault of faults) {
    const { tenantId } = await newCustomer(app);
    ingested.push(
      await ingestThrough(fault, tenantId, { app, folder, run: (...args) => command(env, ...args) }),
    );
    await areHealthy();
  }

  const codes = { drop: await damaged(client, env, 'drop'), alter: await damaged(client, env, 'alter') };
  const { code: verified } = await command(env, 'projections', 'verify');
  const written = await timesWritten(app);
  const lost = seen.acknowledged.filter((name) => !written.has(name));
  const doubled = [...written].filter(([name, count]) => name.startsWith('Writer') && count > 1);
  console.table(recovery);
  console.table(ingested);
  console.table({
    'acknowledged writes': seen.acknowledged.length,
    'acknowledged and lost': lost.length,
    'written twice': doubled.length,
    'reads after a write': seen.reads,
    'answered with 503': seen.unavailable,
    'older than the write, or another response': seen.wrong.length,
    'verify, rebuild, verify after a dropped collection': codes.drop.join(' '),
    'verify, rebuild, verify after an altered document': codes.alter.join(' '),
    'projections verify at the end': verified,
  });
  for (const text of seen.wrong.slice(0, 20)) console.log(text);
  const isGood =
    lost.length + doubled.length + seen.wrong.length + verified === 0 &&
    ingested.every(isWhole) &&
    [codes.drop, codes.alter].every(([found, rebuilt, again]) => found !== 0 && rebuilt === 0 && again === 0);
  await app.close();
  for (const { process: child } of instances) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await client.close();
  await set.close();
  rmSync(folder, { recursive: true, force: true });
  process.exit(isGood ? 0 : 1);
};

void main();
