import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent, Position, ReadFrom } from '../../src/event-log/event-log';
import type { Batch } from '../../src/projecting/batch';
import { consumer, type Batches, type Consumer } from '../../src/projecting/consumer';
import { closeAfterwards } from '../support/closing';
import { until } from '../support/waiting';
import { created, openLog, streams, turn, updated, type TestLog } from './harness';

const BATCH_EVENTS = 1_024;
const TENANT = randomUUID();
const STREAM = streams.tenant(TENANT);

const openConsumer = (
  log: EventLog,
  onError = (error: unknown): void => {
    throw error;
  },
): Consumer => {
  const made = consumer(log, streams, { onError, batchEvents: BATCH_EVENTS });
  closeAfterwards(() => made.close());
  return made;
};

/** The log, counting the events that are read from it. */
const counted = (log: TestLog) => {
  const read = { events: 0, reads: 0 };
  const readAll: TestLog['readAll'] = async function* (from) {
    read.reads += 1;
    for await (const batch of log.readAll(from)) {
      read.events += batch.length;
      yield batch;
    }
  };
  return { log: { ...log, readAll }, read };
};

const endOf = (batch: Batch): Position => batch.at(-1)?.logged.position ?? '';

/** Takes batches until it has the event at a position, pausing after each. */
const take = async (batches: Batches, after: Position | undefined, last: Position, slowness = 0) => {
  const ids: string[] = [];
  for await (const batch of batches(after)) {
    ids.push(...batch.map(({ logged }) => logged.id));
    if (endOf(batch) >= last) break;
    for (let i = 0; i < slowness; i++) await turn();
  }
  return ids;
};

const idsIn = async (log: TestLog, after?: Position) => {
  const ids: string[] = [];
  for await (const batch of log.readAll({ after })) ids.push(...batch.map(({ id }) => id));
  return ids;
};

const appendMany = async (log: TestLog, count: number): Promise<Position> => {
  let last = '';
  for (let recorded = 0; recorded < count; recorded += 1_000) {
    const names = Array.from({ length: Math.min(1_000, count - recorded) }, (_, i) => `${recorded + i}`);
    last = (await log.record(STREAM, ...names.map(updated))).position;
  }
  return last;
};

const filledLog = async (count: number) => {
  const log = await openLog();
  await log.record(STREAM, created());
  return { plain: log, last: await appendMany(log, count - 1), ...counted(log) };
};

describe('followers of the log', () => {
  it('share the events that are read and those that arrive', async () => {
    const plain = await openLog();
    const { position: start } = await plain.record(STREAM, created());
    const { log, read } = counted(plain);
    const { follow } = openConsumer(log);
    const last = (await plain.record(STREAM, ...['a', 'b', 'c'].map(updated))).position;
    const all = await Promise.all([1, 2, 3].map(() => take(follow, start, last)));
    for (const ids of all) expect(ids).toEqual(await idsIn(plain, start));
    expect(read.events).toBe(3);
  });

  it('read nothing twice when events arrive', async () => {
    const plain = await openLog();
    await plain.record(STREAM, created(), ...['a', 'b'].map(updated));
    const { log, read } = counted(plain);
    const batches = openConsumer(log).follow(undefined)[Symbol.asyncIterator]();
    expect((await batches.next()).value).toHaveLength(3);
    const arriving = batches.next();
    await until(() => read.reads === 3);
    await plain.record(STREAM, updated('c'));
    expect((await arriving).value).toHaveLength(1);
    await plain.record(STREAM, updated('d'));
    expect((await batches.next()).value).toHaveLength(1);
    expect(read).toEqual({ events: 5, reads: 3 });
    await batches.return?.();
  });

  it('get everything once and in order at any speed, while appends continue', async () => {
    const log = await openLog();
    await log.record(STREAM, created(), ...Array.from({ length: 700 }, (_, i) => updated(`before ${i}`)));
    const { follow } = openConsumer(log);
    const half = (await log.head())?.position as Position;
    const last = String(Number(half) + 6_000).padStart(half.length, '0');
    const speeds = [
      { after: undefined, slowness: 0 },
      { after: undefined, slowness: 40 },
      { after: half, slowness: 0 },
      { after: half, slowness: 200 },
      { after: String(300).padStart(half.length, '0'), slowness: 3 },
    ];
    const all = Promise.all(speeds.map(({ after, slowness }) => take(follow, after, last, slowness)));
    for (let i = 0; i < 30; i++)
      await log.record(STREAM, ...Array.from({ length: 200 }, (_, j) => updated(`${i} ${j}`)));
    const taken = await all;
    for (const [i, { after }] of speeds.entries()) expect(taken[i]).toEqual(await idsIn(log, after));
  });

  it('are not delayed by one that is far behind, which rejoins them when it has caught up', async () => {
    const { log, last } = await filledLog(5 * BATCH_EVENTS);
    const { follow } = openConsumer(log);
    const ahead = follow(last)[Symbol.asyncIterator]();
    const arriving = ahead.next();
    const behind = follow(undefined)[Symbol.asyncIterator]();
    let at = endOf((await behind.next()).value);
    const news = (await log.record(STREAM, updated('news'))).position;
    expect(endOf((await arriving).value)).toBe(news);
    while (at < news) at = endOf((await behind.next()).value);
    const both = [ahead.next(), behind.next()];
    await log.record(STREAM, updated('for both'));
    const [one, other] = await Promise.all(both);
    expect(one?.value).toEqual(other?.value);
    expect(one?.value[0]).toBe(other?.value[0]);
    await Promise.all([ahead.return?.(), behind.return?.()]);
  });

  it('are not delayed by one that is stuck', async () => {
    const { log, last, plain } = await filledLog(6 * BATCH_EVENTS);
    const { follow } = openConsumer(log);
    const stuck = follow(undefined)[Symbol.asyncIterator]();
    await stuck.next();
    expect(await take(follow, undefined, last)).toEqual(await idsIn(plain));
    await stuck.return?.();
  });

  it('can be ahead of the consumer, and wait for what follows', async () => {
    const log = await openLog();
    await log.record(STREAM, created());
    const { follow } = openConsumer(log);
    const taking = take(follow, '0000000000000002', '0000000000000003');
    for (let turns = 0; turns < 20; turns++) await turn();
    await log.record(STREAM, updated('a'), updated('b'));
    expect(await taking).toEqual((await idsIn(log)).slice(2));
  });

  it('notice appends by another process', async () => {
    const log = await openLog();
    const taking = take(openConsumer(log).follow, undefined, '0000000000000001');
    await (await openLog(log.folder)).record(STREAM, created());
    expect(await taking).toHaveLength(1);
  });

  it('end when they are aborted, and when the consumer is closed', async () => {
    const log = await openLog();
    const shared = openConsumer(log);
    const ending = new AbortController();
    let ended = 0;
    const waitUntil = async (abort: AbortSignal) => {
      for await (const _ of shared.follow(undefined, abort)) void _;
      ended += 1;
    };
    const all = [waitUntil(ending.signal), waitUntil(new AbortController().signal)];
    await turn();
    ending.abort();
    await until(() => ended === 1);
    await shared.close();
    await Promise.all(all);
    expect(ended).toBe(2);
  });

  it('continue after the log failed, without a gap', async () => {
    const log = await openLog();
    await log.record(STREAM, created());
    let failures = 2;
    const errors: unknown[] = [];
    const readAll: TestLog['readAll'] = async function* (from) {
      for await (const batch of log.readAll(from)) {
        if (failures-- > 0) throw new Error('injected');
        yield batch;
      }
    };
    const { follow } = openConsumer({ ...log, readAll }, (error) => errors.push(error));
    const taking = take(follow, '0000000000000001', '0000000000000003');
    await log.record(STREAM, updated('a'), updated('b'));
    expect(await taking).toEqual(await idsIn(log, '0000000000000001'));
    expect(errors).toHaveLength(2);
  });

  it('skip nothing when events arrive faster than they are taken, in any interleaving', async () => {
    const TOTAL = 60_000;
    const event = (number: number): LoggedEvent => ({
      id: String(number),
      type: 'T',
      stream: 's',
      revision: number,
      position: String(number).padStart(16, '0'),
      data: {},
      metadata: {},
      recordedAt: '',
      bytes: 10,
    });
    /** Yields batch after batch without ever yielding to the event loop. */
    const readAll = async function* ({ after = '0', follow = false, signal }: ReadFrom = {}) {
      for (let at = Number(after); at < (follow ? TOTAL : TOTAL / 2); at += 1_000)
        yield Array.from({ length: Math.min(1_000, TOTAL - at) }, (_, i) => event(at + i + 1));
      if (follow) await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
    };
    const distance = async (after: Position = '0', upTo: Position) => Number(upTo) - Number(after);
    const { follow } = openConsumer({ readAll, distance } as unknown as EventLog);
    const takenBy = async (hops: number): Promise<number> => {
      let taken = 0;
      for await (const batch of follow(undefined)) {
        taken += batch.length;
        for (let hop = 0; hop < hops; hop++) await Promise.resolve();
        if (Number(endOf(batch)) >= TOTAL) break;
      }
      return taken;
    };
    const hops = Array.from({ length: 30 }, (_, i) => i);
    expect(await Promise.all(hops.map(takenBy))).toEqual(hops.map(() => TOTAL));
  });
});

const takeAll = async (batches: AsyncIterable<Batch>, slowness = 0): Promise<number> => {
  let seen = 0;
  let before = '';
  for await (const batch of batches) {
    for (const { logged } of batch) {
      if (logged.position <= before) throw new Error(`${logged.position} came after ${before}.`);
      before = logged.position;
    }
    seen += batch.length;
    for (let i = 0; i < slowness; i++) await turn();
  }
  return seen;
};

describe('readers up to a position', () => {
  const COUNT = 4 * BATCH_EVENTS + 10;

  it('share every batch, at any speed', async () => {
    const { log, last, read } = await filledLog(COUNT);
    const batches = openConsumer(log).upTo(last);
    const seen = await Promise.all([0, 5, 50].map((slowness) => takeAll(batches(undefined), slowness)));
    expect(seen).toEqual([COUNT, COUNT, COUNT]);
    expect(read.events).toBe(COUNT);
  });

  it('share batches even if one starts a little later, or is a little behind', async () => {
    const { log, last, read } = await filledLog(COUNT);
    const batches = openConsumer(log).upTo(last);
    const first = takeAll(batches('0000000000001000'), 5);
    // Turn by turn of the event loop: a few milliseconds later it could be finished.
    while (read.events < BATCH_EVENTS) await turn();
    expect(await takeAll(batches(undefined), 5)).toBe(COUNT);
    expect(await first).toBe(COUNT - 1_000);
    expect(read.events).toBeLessThan(1.6 * COUNT);
  });

  it('get as much at once as a commit may hold, and no more', async () => {
    const { log, last } = await filledLog(COUNT);
    const sizes: number[] = [];
    for await (const batch of openConsumer(log).upTo(last)(undefined)) sizes.push(batch.length);
    expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThanOrEqual(BATCH_EVENTS);
    expect(Math.max(...sizes)).toBeLessThan(BATCH_EVENTS + 512);
  });

  it('end if the last event that they wait for is gone', async () => {
    const { log, last } = await filledLog(10);
    const readAll: TestLog['readAll'] = async function* (from) {
      for await (const batch of log.readAll(from)) yield batch.filter(({ position }) => position !== last);
    };
    await log.record(STREAM, updated('later'));
    expect(await takeAll(openConsumer({ ...log, readAll }).upTo(last)(undefined))).toBe(9);
  });

  it('wait only briefly for one that is stuck, and not at all for one that has left', async () => {
    const { log, last } = await filledLog(COUNT);
    const batches = openConsumer(log).upTo(last);
    const stuck = batches(undefined)[Symbol.asyncIterator]();
    await stuck.next();
    expect(await takeAll(batches(undefined))).toBe(COUNT);
    await stuck.return?.();
    expect(await takeAll(batches(undefined))).toBe(COUNT);
  });

  it('go on as soon as one that they wait for has left', async () => {
    const ROUNDS = 10;
    const { log, last } = await filledLog((ROUNDS + 2) * BATCH_EVENTS);
    /** Takes batches one by one; before each, another reader is at work on the one before, and leaves. */
    const timeWith = async (isJoined: boolean): Promise<number> => {
      const batches = openConsumer(log).upTo(last);
      const reader = batches(undefined)[Symbol.asyncIterator]();
      let next = reader.next();
      let at: Position | undefined;
      let waitedMs = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const other = batches(at)[Symbol.asyncIterator]();
        const { value } = await next;
        if (isJoined) expect(endOf((await other.next()).value as Batch)).toBe(endOf(value as Batch));
        at = endOf(value as Batch);
        next = reader.next();
        await turn();
        const startedAt = performance.now();
        await other.return?.();
        await next;
        waitedMs += performance.now() - startedAt;
      }
      await reader.return?.();
      return waitedMs;
    };
    // Waiting in vain takes 100 ms each time.
    let most = Infinity;
    for (let attempt = 0; attempt < 3 && most > 50 * ROUNDS; attempt += 1)
      most = (await timeWith(true)) - (await timeWith(false));
    expect(most).toBeLessThan(50 * ROUNDS);
  });

  it('end there, and get events appended since on the next read', async () => {
    const { log, last } = await filledLog(700);
    const { upTo } = openConsumer(log);
    const { position } = await log.record(STREAM, updated('later'));
    expect(await takeAll(upTo(last)(undefined))).toBe(700);
    expect(await takeAll(upTo(position)(last))).toBe(1);
    expect(await takeAll(upTo(position)(position))).toBe(0);
  });

  it('get events appended since, even if a full batch was the end of the log', async () => {
    // The second page of the log is cut short by its end, which fills the batch.
    const { plain, last } = await filledLog(612);
    const events = consumer(plain, streams, { batchEvents: 600 });
    closeAfterwards(() => events.close());
    expect(await take(events.upTo(last), undefined, last)).toHaveLength(612);
    const { position } = await plain.record(STREAM, updated('more'));
    expect(await take(events.upTo(position), last, position)).toEqual(await idsIn(plain, last));
  });

  it('stop at the end of the log if that comes first', async () => {
    const { log } = await filledLog(20);
    expect(await takeAll(openConsumer(log).upTo('9999999999999999')(undefined))).toBe(20);
  });

  it('fail when the log fails, and can start again', async () => {
    const { log, last } = await filledLog(700);
    let fails = true;
    const readAll: TestLog['readAll'] = (from) => {
      if (fails) throw new Error('away');
      return log.readAll(from);
    };
    const batches = openConsumer({ ...log, readAll }).upTo(last);
    const both = [takeAll(batches(undefined)), takeAll(batches(undefined))];
    for (const one of both) await expect(one).rejects.toThrow('away');
    fails = false;
    expect(await takeAll(batches(undefined))).toBe(700);
  });
});
