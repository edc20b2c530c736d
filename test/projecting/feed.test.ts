import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent, Position, ReadFrom } from '../../src/event-log/event-log';
import { liveFeed, type Feed } from '../../src/projecting/feed';
import { closeAfterwards, created, openLog, streams, turn, until, updated, type TestLog } from './world';

const TENANT = randomUUID();
const STREAM = streams.tenant(TENANT);

/** The log, counting how often somebody reads it from the beginning of a read. */
const counted = (log: TestLog) => {
  let reads = 0;
  return {
    reads: () => reads,
    log: {
      ...log,
      readAll: (from: Parameters<TestLog['readAll']>[0]) => {
        reads += 1;
        return log.readAll(from);
      },
    },
  };
};

const openFeed = async (log: TestLog): Promise<Feed> => {
  const feed = liveFeed(log, streams, (error) => {
    throw error;
  });
  closeAfterwards(() => feed.close());
  return feed;
};

/** Reads until it has the event at a position, taking its time after each batch. */
const consume = async (feed: Feed, after: Position | undefined, last: Position, slowness = 0) => {
  const ids: string[] = [];
  const enough = new AbortController();
  for await (const batch of feed.from(after, enough.signal)) {
    ids.push(...batch.map(({ logged }) => logged.id));
    if ((batch.at(-1)?.logged.position ?? '') >= last) break;
    for (let i = 0; i < slowness; i++) await turn();
  }
  return ids;
};

const idsIn = async (log: TestLog, after?: Position) => {
  const ids: string[] = [];
  for await (const batch of log.readAll({ after })) ids.push(...batch.map(({ id }) => id));
  return ids;
};

describe('the feed', () => {
  it('serves who keeps up from memory: the log is read once for all', async () => {
    const plain = await openLog();
    const { position: start } = await plain.tell(STREAM, created());
    const { log, reads } = counted(plain);
    const feed = await openFeed(log);
    const last = (await plain.tell(STREAM, ...['a', 'b', 'c'].map(updated))).position;
    const consumers = await Promise.all([1, 2, 3].map(() => consume(feed, start, last)));
    for (const ids of consumers) expect(ids).toEqual(await idsIn(plain, start));
    expect(reads()).toBe(1);
  });

  it('reads the log for who is behind, and goes on from memory', async () => {
    const plain = await openLog();
    await plain.tell(STREAM, created(), ...['a', 'b'].map(updated));
    const { log, reads } = counted(plain);
    const feed = await openFeed(log);
    const waiting = feed.from(undefined, new AbortController().signal)[Symbol.asyncIterator]();
    expect((await waiting.next()).value).toHaveLength(3);
    await plain.tell(STREAM, updated('c'));
    expect((await waiting.next()).value).toHaveLength(1);
    const before = reads();
    await plain.tell(STREAM, updated('d'));
    expect((await waiting.next()).value).toHaveLength(1);
    expect(reads()).toBe(before);
    await waiting.return?.();
  });

  it('gives everything once and in order to consumers of every speed, while appends go on', async () => {
    const log = await openLog();
    await log.tell(STREAM, created(), ...Array.from({ length: 700 }, (_, i) => updated(`before ${i}`)));
    const feed = await openFeed(log);
    const half = (await log.head())?.position as Position;
    const last = String(Number(half) + 6_000).padStart(half.length, '0');
    const speeds = [
      { after: undefined, slowness: 0 },
      { after: undefined, slowness: 40 },
      { after: half, slowness: 0 },
      { after: half, slowness: 200 },
      { after: String(300).padStart(half.length, '0'), slowness: 3 },
    ];
    const consumers = Promise.all(speeds.map(({ after, slowness }) => consume(feed, after, last, slowness)));
    for (let i = 0; i < 60; i++)
      await log.tell(STREAM, ...Array.from({ length: 100 }, (_, j) => updated(`${i} ${j}`)));
    const read = await consumers;
    for (const [i, { after }] of speeds.entries()) expect(read[i]).toEqual(await idsIn(log, after));
  });

  it('waits with who is ahead of it, and does not hold up the process', async () => {
    const log = await openLog();
    await log.tell(STREAM, created());
    const feed = await openFeed(log);
    const ahead = '0000000000000002';
    const reading = (async () => {
      for await (const batch of feed.from(ahead, new AbortController().signal))
        return batch.map(({ logged }) => logged.position);
      return [];
    })();
    for (let turns = 0; turns < 20; turns++) await turn();
    await log.tell(STREAM, updated('a'), updated('b'));
    expect(await reading).toEqual(['0000000000000003']);
  });

  it('begins with an empty log', async () => {
    const log = await openLog();
    const feed = await openFeed(log);
    const reading = consume(feed, undefined, '0000000000000002');
    await log.tell(STREAM, created());
    await log.tell(STREAM, updated('a'));
    expect(await reading).toEqual(await idsIn(log));
  });

  it('notices what another process appends', async () => {
    const log = await openLog();
    const feed = await openFeed(log);
    const reading = consume(feed, undefined, '0000000000000001');
    await (await openLog(log.folder)).tell(STREAM, created());
    expect(await reading).toHaveLength(1);
  });

  it('ends with its signal, and when it is closed', async () => {
    const log = await openLog();
    const feed = await openFeed(log);
    const signal = new AbortController();
    let ended = 0;
    const waitIn = async (one: AbortSignal) => {
      for await (const _ of feed.from(undefined, one)) void _;
      ended += 1;
    };
    const all = [waitIn(signal.signal), waitIn(new AbortController().signal)];
    await turn();
    signal.abort();
    await until(() => ended === 1);
    await feed.close();
    await Promise.all(all);
    expect(ended).toBe(2);
  });

  it('goes on after the log failed, without a gap', async () => {
    const log = await openLog();
    await log.tell(STREAM, created());
    let failures = 2;
    const troubles: unknown[] = [];
    const shaky = {
      ...log,
      readAll: async function* (from: Parameters<TestLog['readAll']>[0]) {
        for await (const batch of log.readAll(from)) {
          if (from?.follow === true && failures-- > 0) throw new Error('injected');
          yield batch;
        }
      },
    };
    const feed = liveFeed(shaky, streams, (error) => troubles.push(error));
    closeAfterwards(() => feed.close());
    const reading = consume(feed, '0000000000000001', '0000000000000003');
    await log.tell(STREAM, updated('a'), updated('b'));
    expect(await reading).toEqual(await idsIn(log, '0000000000000001'));
    expect(troubles).toHaveLength(2);
  });

  it('skips nothing when events come faster than they are taken, however the turns fall', async () => {
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
    /** It gives batch after batch without ever letting others go. */
    const readAll = async function* ({ after = '0', follow = false, signal }: ReadFrom = {}) {
      if (follow) await new Promise((resolve) => setTimeout(resolve, 20));
      for (let at = Number(after); at < TOTAL; at += 1_000)
        yield Array.from({ length: Math.min(1_000, TOTAL - at) }, (_, i) => event(at + i + 1));
      if (follow) await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
    };
    const feed = liveFeed(
      { readAll, head: async () => undefined } as unknown as EventLog,
      streams,
      () => undefined,
    );
    closeAfterwards(() => feed.close());
    const takenBy = async (hops: number): Promise<number> => {
      let taken = 0;
      for await (const batch of feed.from(undefined, new AbortController().signal)) {
        taken += batch.length;
        for (let hop = 0; hop < hops; hop++) await Promise.resolve();
        if (Number(batch.at(-1)?.logged.position) >= TOTAL) break;
      }
      return taken;
    };
    const hops = Array.from({ length: 30 }, (_, i) => i);
    expect(await Promise.all(hops.map(takenBy))).toEqual(hops.map(() => TOTAL));
  });
});
