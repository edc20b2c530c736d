import { agingMap, type AgingMap } from './aging-map';

/** The count of a key in its window, or since its block started. Times are in milliseconds on a monotonic clock. */
export interface Count {
  readonly points: number;
  readonly endsAt: number;
}

/** Counters in memory, bounded in number however many addresses there are. */
export interface Counters {
  /** Counts in the current window of the key, or starts one. */
  add(key: string, points: number, windowMs: number): Count;
  /** Starts a block. */
  block(key: string, points: number, blockMs: number): Count;
  get(key: string): Count | undefined;
  remove(key: string): boolean;
  now(): number;
  kept(): number;
  /** How many were dropped to make room. */
  dropped(): number;
}

/** How many expired counters are removed for each new one: enough to keep up, without delaying a request for long. */
const MAX_SWEPT = 8;

/** Copies a text: a substring of a header would keep the whole header in memory. */
const copyOf = (text: string): string => Buffer.from(text, 'latin1').toString('latin1');

export const boundedCounters = (max: number, now: () => number = () => performance.now()): Counters => {
  const counting = agingMap<Count>();
  const blocked = agingMap<Count>();
  let dropped = 0;

  const sweep = (counts: AgingMap<Count>, at: number): void => {
    for (let swept = 0; swept < MAX_SWEPT; swept += 1) {
      const oldest = counts.oldest();
      if (oldest === undefined || (counts.get(oldest)?.endsAt ?? 0) > at) return;
      counts.delete(oldest);
    }
  };

  /** Evicts the oldest counter that is not blocked; if all are, the one whose block started first. */
  const makeRoom = (at: number): void => {
    sweep(counting, at);
    sweep(blocked, at);
    if (counting.size + blocked.size < max) return;
    const oldest = counting.oldest();
    if (oldest !== undefined) counting.delete(oldest);
    else blocked.delete(blocked.oldest() ?? '');
    dropped += 1;
  };

  const get = (key: string): Count | undefined => {
    const count = blocked.get(key) ?? counting.get(key);
    return count !== undefined && count.endsAt > now() ? count : undefined;
  };

  const remove = (key: string): boolean => {
    const wasCounting = counting.delete(key);
    return blocked.delete(key) || wasCounting;
  };

  const start = (counts: AgingMap<Count>, key: string, points: number, ms: number): Count => {
    const at = now();
    remove(key);
    makeRoom(at);
    const count = { points, endsAt: at + ms };
    counts.set(copyOf(key), count);
    return count;
  };

  return {
    add: (key, points, windowMs) => {
      const count = get(key);
      if (count === undefined) return start(counting, key, points, windowMs);
      // Not updated in place: the caller reads it later, when further requests have been counted.
      const next = { points: count.points + points, endsAt: count.endsAt };
      (blocked.get(key) === undefined ? counting : blocked).set(key, next);
      return next;
    },
    block: (key, points, blockMs) => start(blocked, key, points, blockMs),
    get,
    remove,
    now,
    kept: () => counting.size + blocked.size,
    dropped: () => dropped,
  };
};
