import type { LedgerLog } from '../event-log/streams';
import { fairSlices, slicedLog } from './fair-slices';
import { followedTenants } from './followed-tenants';
import { historyReads } from './history';
import { streamLimits } from './stream-limits';

/** Where a server reads raw events, without keeping other requests waiting. */
export const eventSource = (ledgerLog: LedgerLog, stopping: AbortSignal) => {
  const nextSlice = fairSlices();
  return {
    /** It is for reads of single events. */
    ledgerLog,
    /** The same log, read in slices of the tenant. */
    sliced: (tenantId: string): LedgerLog => slicedLog(ledgerLog, () => nextSlice(tenantId)),
    /** Other long reads begin each of their pages with a slice. */
    nextSlice,
    followTenant: followedTenants(ledgerLog),
    readHistory: historyReads(ledgerLog, nextSlice),
    openStream: streamLimits(),
    /** Aborted when the process is stopping, possibly with a reason that readers should know. */
    stopping,
  };
};

export type EventSource = ReturnType<typeof eventSource>;
