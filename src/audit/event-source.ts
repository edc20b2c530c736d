import type { LedgerLog } from '../event-log/streams';
import { fairSlices, slicedLog, type NextSlice } from './fair-slices';
import { followedTenants, type FollowTenant } from './followed-tenants';
import { historyReads, type ReadHistory } from './history';
import { streamLimits, type OpenStream } from './stream-limits';

/** Where a server reads raw events, without keeping other requests waiting. */
export interface EventSource {
  /** It is for reads of single events. */
  readonly ledgerLog: LedgerLog;
  /** The same log, read in slices of the tenant. */
  readonly sliced: (tenantId: string) => LedgerLog;
  /** Other long reads begin each of their pages with a slice. */
  readonly nextSlice: NextSlice;
  readonly followTenant: FollowTenant;
  readonly readHistory: ReadHistory;
  readonly openStream: OpenStream;
  /** Aborted when the process is stopping, possibly with a reason that readers should know. */
  readonly stopping: AbortSignal;
}

export const eventSource = (ledgerLog: LedgerLog, stopping: AbortSignal): EventSource => {
  const nextSlice = fairSlices();
  return {
    ledgerLog,
    sliced: (tenantId) => slicedLog(ledgerLog, () => nextSlice(tenantId)),
    nextSlice,
    followTenant: followedTenants(ledgerLog),
    readHistory: historyReads(ledgerLog, nextSlice),
    openStream: streamLimits(),
    stopping,
  };
};
