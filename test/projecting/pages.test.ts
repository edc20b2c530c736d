import { randomUUID } from 'node:crypto';
import { BATCH_EVENTS, sharedPages, type FedBatch } from '../../src/projecting/pages';
import { created, openLog, streams, turn, updated, type TestLog } from './world';

const TENANT = randomUUID();
const STREAM = streams.tenant(TENANT);

/** A log of some full pages and a last one that is not, which counts the reads of each page. */
const filledLog = async (pages: number) => {
  const log = await openLog();
  const count = pages * BATCH_EVENTS + 10;
  const { position } = await log.tell(
    STREAM,
    created(),
    ...Array.from({ length: count - 1 }, (_, i) => updated(`${i}`)),
  );
  const reads = new Map<string, number>();
  const readAll: TestLog['readAll'] = (from = {}) => {
    reads.set(from.after ?? '', (reads.get(from.after ?? '') ?? 0) + 1);
    return log.readAll(from);
  };
  return { log: { ...log, readAll }, last: position, count, reads };
};

const readThrough = async (events: AsyncIterable<FedBatch>, slowness: number): Promise<number> => {
  let seen = 0;
  let before = '';
  for await (const batch of events) {
    for (const { logged } of batch) {
      if (logged.position <= before) throw new Error(`${logged.position} came after ${before}.`);
      before = logged.position;
    }
    seen += batch.length;
    for (let i = 0; i < slowness; i++) await turn();
  }
  return seen;
};

describe('shared pages', () => {
  it('read a page once for those who go through the log together, at whatever speed', async () => {
    const { log, last, count, reads } = await filledLog(8);
    const events = sharedPages(log, streams).upTo(last);
    const seen = await Promise.all([0, 5, 50].map((slowness) => readThrough(events(undefined), slowness)));
    expect(seen).toEqual([count, count, count]);
    const full = [...reads.values()].slice(0, -1);
    expect(full).toEqual(Array.from({ length: 8 }, () => 1));
  });

  it('let nobody wait for ever for one that is stuck, or at all for one that has left', async () => {
    const { log, last, count } = await filledLog(6);
    const events = sharedPages(log, streams).upTo(last);
    const stuck = events(undefined)[Symbol.asyncIterator]();
    await stuck.next();
    expect(await readThrough(events(undefined), 0)).toBe(count);
    await stuck.return?.();
    const began = performance.now();
    expect(await readThrough(events(undefined), 0)).toBe(count);
    expect(performance.now() - began).toBeLessThan(6 * 100);
  });

  it('end at the position that was named, and see what came since at the next reading', async () => {
    const { log, last } = await filledLog(1);
    const pages = sharedPages(log, streams);
    const { position } = await log.tell(STREAM, updated('later'));
    expect(await readThrough(pages.upTo(last)(undefined), 0)).toBe(BATCH_EVENTS + 10);
    expect(await readThrough(pages.upTo(position)(last), 0)).toBe(1);
    expect(await readThrough(pages.upTo(position)(position), 0)).toBe(0);
  });

  it('do not keep a read that failed', async () => {
    const { log, last, count } = await filledLog(1);
    let fails = true;
    const readAll: TestLog['readAll'] = (from) => {
      if (fails) throw new Error('away');
      return log.readAll(from);
    };
    const events = sharedPages({ ...log, readAll }, streams).upTo(last);
    await expect(readThrough(events(undefined), 0)).rejects.toThrow('away');
    fails = false;
    expect(await readThrough(events(undefined), 0)).toBe(count);
  });

  it('are not kept without end for one that is stuck', async () => {
    const { log, last, count, reads } = await filledLog(12);
    const events = sharedPages(log, streams).upTo(last);
    const stuck = events(undefined)[Symbol.asyncIterator]();
    await stuck.next();
    expect(await readThrough(events(undefined), 0)).toBe(count);
    expect(await readThrough(events(undefined), 0)).toBe(count);
    const readTwice = [...reads.values()].filter((times) => times > 1);
    expect(readTwice.length).toBeGreaterThan(5);
    await stuck.return?.();
  });
});
