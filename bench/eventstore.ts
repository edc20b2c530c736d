import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventLog, LoggedEvent, NewEvent } from '../src/event-log/event-log';
import { eventStoreDbEventLog } from '../src/event-log/eventstoredb/eventstoredb-event-log';
import { streamNames } from '../src/event-log/streams';
import { anEvent } from '../test/support/events';
import { databaseUrl } from '../test/support/mongodb/database-url';
import { mongodbServer } from './mongodb-server';
import { MANY, measureByTurns, median, put, startService, stopAll, type Target } from './http-load';

/**
 * Append and read rates of the EventStoreDB adapter, and of `PUT /tenants/self` on it: `npm run bench -- eventstore`, with EVENTSTORE_URL, or else with the
 * stand-in in its own process. With RECONNECTS=10000, only the heap before and after that many cut connections.
 */
const PAYLOAD = { entityId: 'tok_0123456789', note: 'x'.repeat(280) };
const SECONDS = 3;
const SERVER = join(__dirname, '..', 'test', 'support', 'event-store', 'stand-in-process.js');

const event = () => anEvent(PAYLOAD, { metadata: { version: 1 } });
const print = (what: string, value: string): void => console.log(`${what.padEnd(44)} ${value}`);
const perSecond = (count: number, ms: number): string => `${Math.round((count * 1_000) / ms)}/s`;

const server = async (): Promise<{
  readonly url: string;
  readonly what: string;
  readonly stop: () => void;
}> => {
  const configuredUrl = process.env['EVENTSTORE_URL'];
  if (configuredUrl !== undefined)
    return { url: configuredUrl, what: 'EVENTSTORE_URL', stop: () => undefined };
  const child = fork(SERVER);
  const [url] = (await once(child, 'message')) as [string];
  return { url, what: 'the stand-in', stop: () => child.disconnect() };
};

const openLog = (url: string): Promise<EventLog> =>
  eventStoreDbEventLog(url, streams, { waitMs: 10_000, onError: (what) => console.log(what) });

const streams = streamNames(`bench-${randomUUID()}.`);

const measureAppends = async (log: EventLog, writers: number, perCall: number): Promise<number> => {
  const end = performance.now() + SECONDS * 1_000;
  let count = 0;
  const writer = async (): Promise<void> => {
    const stream = streams.tenant(randomUUID());
    let revision = -1;
    while (performance.now() < end) {
      const events = Array.from({ length: perCall }, event);
      ({ revision } = await log.append(stream, events, revision < 0 ? 'no_stream' : revision, 10_000));
      count += perCall;
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: writers }, writer));
  print(`append, ${writers} writers, ${perCall} a call`, perSecond(count, performance.now() - began));
  return count;
};

const measureReads = async (what: string, batches: AsyncIterable<readonly LoggedEvent[]>): Promise<void> => {
  const began = performance.now();
  let count = 0;
  for await (const batch of batches) count += batch.length;
  print(what, `${perSecond(count, performance.now() - began)} (${count} events)`);
};

const measureLatency = async (log: EventLog): Promise<void> => {
  const abort = new AbortController();
  const sent = new Map<string, number>();
  const waits: number[] = [];
  const after = (await log.head())?.position;
  const following = (async () => {
    for await (const batch of log.readAll({ after, follow: true, signal: abort.signal }))
      for (const { id } of batch) waits.push(performance.now() - (sent.get(id) ?? 0));
  })();
  const stream = streams.activity(randomUUID());
  for (let i = 0; i < 300; i += 1) {
    const appended = event();
    sent.set(appended.id, performance.now());
    await log.append(stream, [appended], i === 0 ? 'no_stream' : i - 1);
  }
  while (waits.length < 300) await new Promise((resolve) => setTimeout(resolve, 10));
  abort.abort();
  await following;
  const sorted = waits.slice(10).toSorted((a, b) => a - b);
  const at = (share: number): string => `${sorted[Math.floor(share * sorted.length)]?.toFixed(1)} ms`;
  print('from append to follower', `p50 ${at(0.5)}, p99 ${at(0.99)}`);
};

/** `PUT /tenants/self` of a service on the event store, to compare with a bare append. With BASE, also of another build. */
const measurePuts = async (url: string): Promise<void> => {
  const root = mkdtempSync(join(tmpdir(), 'tenant-ledger-bench-'));
  const mongo = await mongodbServer();
  const builds = [['this build', undefined] as const, ['BASE', process.env['BASE']] as const];
  const targets: [string, Target][] = [];
  for (const [build, main] of builds) {
    if (build === 'BASE' && main === undefined) continue;
    const name = randomUUID();
    const env = {
      EVENTSTORE_URL: url,
      STREAM_PREFIX: `bench-${name}.`,
      MONGODB_URL: databaseUrl(mongo.url, name),
    };
    targets.push([build, await startService(root, env, main)]);
  }
  const loads = new Map(
    [1, MANY].flatMap((connections) =>
      targets.map(([name, target]) => [put(name, connections), target] as const),
    ),
  );
  try {
    for (const [{ name, connections }, each] of await measureByTurns(loads, 3, SECONDS)) {
      const rate = median(each.map((measured) => measured.rate));
      const cost = median(each.map((measured) => measured.cost));
      print(
        `PUT, ${connections} connections, ${name}`,
        `${rate.toFixed(0)}/s, ${((connections * 1_000) / rate).toFixed(1)} ms each, ${cost.toFixed(0)} µs of processor`,
      );
    }
  } finally {
    await stopAll(targets.map(([, target]) => target.server));
    await mongo.close();
    rmSync(root, { recursive: true, force: true });
  }
};

const rates = async (): Promise<void> => {
  const { url, what, stop } = await server();
  const log = await openLog(url);
  console.log(`EventStoreDB adapter on ${what}, events of ${JSON.stringify(PAYLOAD).length} bytes`);
  for (const [writers, perCall] of [
    [1, 1],
    [64, 1],
    [1, 100],
    [4, 500],
  ] as const)
    await measureAppends(log, writers, perCall);
  await measureReads('readAll', log.readAll());
  await measureLatency(log);
  await log.close();
  await measurePuts(url);
  stop();
};

const heap = (): number => {
  global.gc?.();
  return process.memoryUsage().heapUsed / 1_048_576;
};

/** More events than are kept for followers, so that the heap should not grow afterwards. */
const WARM_UP = 9_000;
const MARKS = 5;

const reconnects = async (count: number): Promise<void> => {
  const child = fork(SERVER);
  const [url] = (await once(child, 'message')) as [string];
  const log = await openLog(url);
  const abort = new AbortController();
  let seen = 0;
  const following = (async () => {
    for await (const batch of log.readAll({ follow: true, signal: abort.signal })) seen += batch.length;
  })();
  const stream = streams.tenant(randomUUID());
  let revision = -1;
  const appended = async (events: readonly NewEvent[]): Promise<void> => {
    ({ revision } = await log.append(stream, events, revision < 0 ? 'no_stream' : revision, 10_000));
    while (seen <= revision) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  for (let i = 0; i < WARM_UP; i += 100) await appended(Array.from({ length: 100 }, event));
  const round = async (): Promise<void> => {
    await appended([event()]);
    child.send('cut');
    await once(child, 'message');
  };
  for (let i = 0; i < count / 20; i += 1) await round();
  const before = heap();
  const began = performance.now();
  for (let i = 1; i <= count; i += 1) {
    await round();
    if (i % Math.ceil(count / MARKS) === 0) print(`after ${i} reconnects`, `${heap().toFixed(1)} MiB`);
  }
  const seconds = ((performance.now() - began) / 1_000).toFixed(0);
  print(
    `heap before and after ${count} reconnects`,
    `${before.toFixed(1)} and ${heap().toFixed(1)} MiB (${seconds} s)`,
  );
  abort.abort();
  await following;
  await log.close();
  child.disconnect();
};

const reconnectCount = Number(process.env['RECONNECTS'] ?? 0);
void (reconnectCount > 0 ? reconnects(reconnectCount) : rates());
