import type { LedgerLog } from '../event-log/ledger-log';

/** Resolves when it is the tenant's turn. What follows it without waiting for I/O is one slice of work. */
export type Turns = (tenantId: string) => Promise<void>;

/**
 * Shares a thread between tenants, one slice of work at a time: whoever asks for many turns at once gets no more of them
 * than the others. Between two slices, the thread handles everything else that it has to do.
 */
export const fairTurns = (): Turns => {
  /** In the order of their next turns. */
  const tenants = new Map<string, (() => void)[]>();
  let isRunning = false;

  const runNext = (): void => {
    const [next] = tenants;
    isRunning = next !== undefined;
    if (next === undefined) return;
    const [tenantId, [begin, ...others]] = next;
    tenants.delete(tenantId);
    if (others.length > 0) tenants.set(tenantId, others);
    setImmediate(runNext);
    begin?.();
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

async function* inTurns<Batch>(
  batches: AsyncIterable<Batch>,
  turn: () => Promise<void>,
): AsyncGenerator<Batch> {
  await turn();
  for await (const batch of batches) {
    yield batch;
    await turn();
  }
}

/** Reads each batch of a stream or of a tenant in a turn of its own. A turn that throws ends the read. */
export const readingInTurns = ({ log, streams }: LedgerLog, turn: () => Promise<void>): LedgerLog => ({
  streams,
  log: {
    ...log,
    readStream: (...from) => inTurns(log.readStream(...from), turn),
    readTenant: (...from) => inTurns(log.readTenant(...from), turn),
  },
});
