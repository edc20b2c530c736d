import { execSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { pause } from '../../src/clock';
import type { EventLog, LoggedEvent, NewEvent } from '../../src/event-log/event-log';
import { eventStoreDbEventLog } from '../../src/event-log/eventstoredb/eventstoredb-event-log';
import { streamNames } from '../../src/event-log/streams';
import { codeOf } from '../../src/fault';
import { startStandIn } from '../support/event-store/stand-in';
import { anEvent } from '../support/events';

/**
 * `npm run campaign:eventstore [ROUNDS]`: writers and a follower while the server is frozen and killed, round by round.
 * Every acknowledged event must be there exactly once, an unknown outcome is settled by repeating the same append, and
 * the follower must see everything exactly once, in order. Runs against the stand-in, or EVENTSTORE_URL with shell
 * commands that act on the server: STORE_FREEZE, STORE_THAW, STORE_KILL, STORE_START.
 */
const WRITERS = 16;
const FROZEN_MS = 4_000;
const BUSY_MS = 1_500;

interface Victim {
  readonly url: string;
  freeze(): unknown;
  thaw(): unknown;
  kill(): unknown;
  start(): unknown;
  stop(): unknown;
}

const shell = (name: string) => (): void => {
  const command = process.env[`STORE_${name}`] ?? '';
  if (command === '') throw new Error(`STORE_${name} is not set.`);
  // The server reads every variable that starts with EVENTSTORE_ as its own, and does not start with ours.
  const { EVENTSTORE_URL: _, ...env } = process.env;
  execSync(command, { stdio: 'ignore', shell: '/bin/sh', env });
};

const victim = async (): Promise<Victim> => {
  const url = process.env['EVENTSTORE_URL'] ?? '';
  if (url !== '')
    return {
      url,
      freeze: shell('FREEZE'),
      thaw: shell('THAW'),
      kill: shell('KILL'),
      start: shell('START'),
      stop: () => undefined,
    };
  const server = await startStandIn();
  const { gate, kill, restart, stop } = server;
  return { url: server.url, freeze: gate.freeze, thaw: gate.thaw, kill, start: restart, stop };
};

const counts = new Map<string, number>();
const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);

/** Keeps appending. After an unknown outcome it repeats the same append at the same revision until it is settled. */
const writer = async (log: EventLog, stream: string, over: () => boolean): Promise<readonly NewEvent[]> => {
  const acknowledged: NewEvent[] = [];
  let pending: NewEvent | undefined;
  while (!over() || pending !== undefined) {
    const event: NewEvent = pending ?? anEvent({ number: acknowledged.length });
    const at = acknowledged.length - 1;
    try {
      await log.append(stream, [event], at < 0 ? 'no_stream' : at);
      acknowledged.push(event);
      if (pending !== undefined) count('settled later');
      pending = undefined;
      count('acknowledged');
    } catch (error) {
      const code = codeOf(error) ?? String(error);
      count(code);
      if (code === 'outcome_unknown') pending = event;
      if (code === 'stream_changed') throw error;
      await pause(20);
    }
  }
  return acknowledged;
};

const rounds = async (server: Victim, log: EventLog, number: number): Promise<void> => {
  const recovered = async (): Promise<void> => {
    const startedAt = performance.now();
    while (
      !(await log.head().then(
        () => true,
        () => false,
      ))
    )
      await pause(20);
    console.log(`  works again after ${Math.round(performance.now() - startedAt)} ms`);
  };
  for (let round = 0; round < number; round += 1) {
    await pause(BUSY_MS);
    console.log(`round ${round + 1}: frozen for ${FROZEN_MS} ms`);
    server.freeze();
    await pause(FROZEN_MS);
    server.thaw();
    await recovered();
    await pause(BUSY_MS);
    console.log(`round ${round + 1}: killed and started again`);
    await server.kill();
    await pause(300);
    await server.start();
    await recovered();
  }
  await pause(BUSY_MS);
};

const campaign = async (number: number): Promise<void> => {
  const server = await victim();
  const streams = streamNames(`campaign-${randomUUID()}.`);
  const onError = (): void => count('reports that the log is away');
  const log = await eventStoreDbEventLog(server.url, streams, { waitMs: 30_000, onError });
  const abort = new AbortController();
  const seen: LoggedEvent[] = [];
  const following = (async () => {
    for await (const batch of log.readAll({ follow: true, signal: abort.signal })) seen.push(...batch);
  })();

  let over = false;
  const names = Array.from({ length: WRITERS }, () => streams.tenant(randomUUID()));
  const writing = Promise.all(names.map((name) => writer(log, name, () => over)));
  await rounds(server, log, number);
  over = true;
  const written = await writing;

  const stored: LoggedEvent[] = [];
  for await (const batch of log.readAll()) stored.push(...batch);
  while (seen.length < stored.length) await pause(20);
  abort.abort();
  await following;
  await log.close();
  await server.stop();

  const ids = new Map<string, number>();
  for (const { id } of stored) ids.set(id, (ids.get(id) ?? 0) + 1);
  const acknowledged = written.flat();
  const wrong = {
    'acknowledged and lost': acknowledged.filter(({ id }) => !ids.has(id)).length,
    'stored twice': [...ids.values()].filter((times) => times > 1).length,
    'stored and not acknowledged': stored.length - acknowledged.length,
    'follower differs from the log':
      seen.filter(({ id }, i) => id !== stored[i]?.id).length + Math.abs(seen.length - stored.length),
  };
  console.table({ ...Object.fromEntries(counts), ...wrong });
  if (Object.values(wrong).some((many) => many > 0)) process.exitCode = 1;
};

void campaign(Number(process.argv[2] ?? 2));
