import { threadMs } from '../async/clock';
import type { Batch } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { TIMES } from '../times';

/** Whoever reads does this many events before it looks whether its slice is over. */
const PART_EVENTS = 8;

/** A slice of the time of this thread, which is over when its time is up, and when the next one begins. */
export type Slice = { readonly isOver: () => boolean };

/** Resolves when it is the tenant's turn. */
export type NextSlice = (tenantId: string) => Promise<Slice>;

/**
 * Shares the thread that answers requests among those who read long stretches of the log: one slice at a time in the
 * whole process, tenant by tenant, and between two of them everything else that the thread has to do.
 */
export const fairSlices = (): NextSlice => {
  /** The tenants in the order of their next slices, each with those who wait for one. */
  const tenants = new Map<string, ((slice: Slice) => void)[]>();
  let isRunning = false;
  let current: Slice | undefined;

  const newSlice = (): Slice => {
    const endsAt = threadMs() + TIMES.turnMs;
    const slice: Slice = { isOver: () => current !== slice || threadMs() >= endsAt };
    return slice;
  };
  const runNext = (): void => {
    const [next] = tenants;
    isRunning = next !== undefined;
    if (next === undefined) return;
    const [tenantId, [begin, ...others]] = next;
    tenants.delete(tenantId);
    if (others.length > 0) tenants.set(tenantId, others);
    setImmediate(runNext);
    current = newSlice();
    begin?.(current);
  };

  return (tenantId) =>
    new Promise((resolve) => {
      const waiting = tenants.get(tenantId);
      if (waiting === undefined) tenants.set(tenantId, [resolve]);
      else waiting.push(resolve);
      if (!isRunning) setImmediate(runNext);
      isRunning = true;
    });
};

async function* inSlices(read: () => AsyncIterable<Batch>, nextSlice: () => Promise<Slice>) {
  let slice = await nextSlice();
  for await (const batch of read()) {
    for (let from = 0; from < batch.length; from += PART_EVENTS) {
      if (slice.isOver()) slice = await nextSlice();
      yield batch.slice(from, from + PART_EVENTS);
    }
    slice = await nextSlice();
  }
}

/** Reads streams and tenants in slices. A `nextSlice` that throws ends the read. */
export const slicedLog = ({ log, streams }: LedgerLog, nextSlice: () => Promise<Slice>): LedgerLog => ({
  streams,
  log: {
    ...log,
    readStream: (...from) => inSlices(() => log.readStream(...from), nextSlice),
    readTenant: (...from) => inSlices(() => log.readTenant(...from), nextSlice),
  },
});
