import { agingMap, type AgingMap } from './aging-map';

/** Counts of one key in its window, or since its block began. Times are milliseconds on a clock that never jumps. */
export interface Count {
  readonly points: number;
  readonly endsAt: number;
}

/** Counters in memory: never more of them than were allowed for, however many addresses come. */
export interface Counters {
  /** Counts in the window of this key, or begins one. */
  add(key: string, points: number, windowMs: number): Count;
  /** Begins a block. */
  block(key: string, points: number, blockMs: number): Count;
  get(key: string): Count | undefined;
  remove(key: string): boolean;
  now(): number;
  /** How many are kept, and how many were dropped to make room. */
  kept(): number;
  dropped(): number;
}

/** The most expired ones removed for each new one: it keeps pace and never stops a request for long. */
const SWEPT_AT_ONCE = 8;

/** A text of its own: one cut out of a header would keep the whole header in memory. */
const ownText = (text: string): string => Buffer.from(text, 'latin1').toString('latin1');

export const boundedCounters = (max: number, now: () => number = () => performance.now()): Counters => {
  const counting = agingMap<Count>();
  const blocked = agingMap<Count>();
  let dropped = 0;

  const sweep = (counts: AgingMap<Count>, at: number): void => {
    for (let left = SWEPT_AT_ONCE; left > 0; left -= 1) {
      const oldest = counts.oldest();
      if (oldest === undefined || (counts.get(oldest)?.endsAt ?? 0) > at) return;
      counts.delete(oldest);
    }
  };

  /** The oldest that is not blocked goes; among blocked ones only, the one whose block began first. */
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

  const begin = (counts: AgingMap<Count>, key: string, points: number, ms: number): Count => {
    const at = now();
    remove(key);
    makeRoom(at);
    const count = { points, endsAt: at + ms };
    counts.set(ownText(key), count);
    return count;
  };

  return {
    add: (key, points, windowMs) => {
      const count = get(key);
      if (count === undefined) return begin(counting, key, points, windowMs);
      // A new one each time: the caller looks at it later, when others have been counted.
      const next = { points: count.points + points, endsAt: count.endsAt };
      (blocked.get(key) === undefined ? counting : blocked).set(key, next);
      return next;
    },
    block: (key, points, blockMs) => begin(blocked, key, points, blockMs),
    get,
    remove,
    now,
    kept: () => counting.size + blocked.size,
    dropped: () => dropped,
  };
};
