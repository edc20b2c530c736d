import { boundedCache } from '../bounded-cache';
import { monotonicMs } from '../async/clock';
import { add, tallyOf, type KeyDay, type KeyUses, type Tally } from './key-uses';
import { pendingTallies } from './pending-tallies';

export interface KeyUsesOptions {
  readonly periodMs?: number;
  readonly maxKeysPerTenant?: number;
  readonly report?: (what: string, error: unknown) => void;
}

/** What a killed process loses at most. */
const PERIOD_MS = 60_000;

/** Uses within this time are written as one batch. */
const BATCH_MS = 500;

/** Few enough to be sent without keeping requests waiting. */
const BATCH_SIZE = 500;

/** If there are more keys at once, they are written early. If even that takes too long, uses are not counted. */
const MAX_KEYS = 10_000;

/** A single tenant must not crowd out the others. */
const MAX_KEYS_PER_TENANT = 1_000;

/** Rings at the earliest of the times that it was set to, on the monotonic clock. */
const alarm = (ring: () => void) => {
  let timer: NodeJS.Timeout | undefined;
  let time = Infinity;
  const clear = (): void => {
    clearTimeout(timer);
    time = Infinity;
  };
  const set = (at: number): void => {
    if (at >= time) return;
    clear();
    time = at;
    timer = setTimeout(ring, at - monotonicMs()).unref();
  };
  return { set, clear };
};

/**
 * Counts uses in memory, bounded by the number of keys, and writes them in batches: the first use of a key at once, later
 * ones together after a while. What could not be written is tried again, so a write that fails half-way may count twice.
 */
export const batchedUses = (
  write: (days: readonly KeyDay[]) => Promise<unknown>,
  options: KeyUsesOptions,
): Pick<KeyUses, 'used' | 'close'> => {
  const { periodMs = PERIOD_MS, maxKeysPerTenant = MAX_KEYS_PER_TENANT } = options;
  const writtenAt = boundedCache<number>(MAX_KEYS);
  const idOf = ({ tenantId, keyId, date }: KeyDay): string => `${tenantId} ${keyId} ${date}`;
  const pending = pendingTallies<Tally>(idOf, add, MAX_KEYS, maxKeysPerTenant);
  const { set: flushAt, clear } = alarm(() => flush(monotonicMs() + BATCH_MS));
  let writing: Promise<void> | undefined;
  let lost = 0;

  const writeDays = async (days: readonly Tally[]): Promise<void> => {
    const now = monotonicMs();
    for (const { keyId } of days) writtenAt.put(keyId, now);
    try {
      await write(days);
    } catch {
      for (const day of days) if (!pending.add(day, now + periodMs)) lost += 1;
    }
    writing = undefined;
    flushAt(pending.nextDueAt());
  };

  /** One write at a time, so that a slow store costs no memory either. */
  const flush = (dueBy: number): void => {
    if (writing !== undefined) return;
    clear();
    if (lost > 0)
      options.report?.('Some uses of keys were not counted.', new Error(`Too many keys: ${lost} uses.`));
    lost = 0;
    const due = pending.take(dueBy, BATCH_SIZE);
    if (due.length > 0) writing = writeDays(due);
    else flushAt(pending.nextDueAt());
  };

  return {
    used: (request) => {
      const day = tallyOf(request);
      const lastWrite = writtenAt.get(request.keyId) ?? -Infinity;
      const dueAt = Math.max(monotonicMs() + BATCH_MS, lastWrite + periodMs);
      if (!pending.add(day, dueAt)) {
        flush(Infinity);
        if (!pending.add(day, dueAt)) lost += 1;
      }
      if (writing === undefined) flushAt(dueAt);
    },
    close: async () => {
      await writing;
      for (let before = Infinity; pending.size() > 0 && pending.size() < before;) {
        before = pending.size();
        flush(Infinity);
        await writing;
      }
      clear();
    },
  };
};
