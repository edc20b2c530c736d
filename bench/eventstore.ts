import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { EventLog, LoggedEvent, NewEvent } from '../src/event-log/event-log';
import { eventStoreDbEventLog } from '../src/event-log/eventstoredb/eventstoredb-event-log';
import { streamNames } from '../src/event-log/streams';
import { anEvent } from '../test/support/events';
import { bench } from './builds';
import { eventStore, STAND_IN } from './stores';

/**
 * Append and read rates of the EventStoreDB adapter, with EVENTSTORE_URL, or else with the stand-in in its own process.
 * With RECONNECTS=10000, only the heap before and after that many cut connections.
 * `npm run bench -- eventstore [SECONDS]`
 */
const PAYLOAD = { entityId: 'tok_0123456789', note: 'x'.repeat(280) };
const SECONDS = Number(process.argv[2] ?? 3);

const event = () => anEvent(PAYLOAD, { metadata: { version: 1 } });
const print = (what: string, value: string): void => console.log(`${what.padEnd(44)} ${value}`);
const perSecond = (count: number, ms: number): string => `${Math.round((count * 1_000) / ms)}/s`;

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

const rates = async (): Promise<void> => {
  const { url, name, close } = await eventStore();
  const log = await openLog(url);
  console.log(`EventStoreDB adapter on ${name}, events of ${JSON.stringify(PAYLOAD).length} bytes`);
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
  await close();
};

const heap = (): number => {
  global.gc?.();
  return process.memoryUsage().heapUsed / 1_048_576;
};

/** More events than are kept for followers, so that the heap should not grow afterwards. */
const WARM_UP = 9_000;
const MARKS = 5;

const reconnects = async (count: number): Promise<void> => {
  const child = fork(STAND_IN);
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
void (reconnectCount > 0 ? reconnects(reconnectCount) : bench(rates));
