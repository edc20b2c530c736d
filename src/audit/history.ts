import { beforeDeadline, monotonicMs } from '../async/clock';
import { turns, whileUsed } from '../async/concurrency';
import type { LedgerLog } from '../event-log/streams';
import { fault, type Fault } from '../fault';
import { slicedLog, type Slice, type NextSlice } from './fair-slices';

/** So many reads of a tenant's history are under way at a time; the others wait in order. */
const PER_TENANT = 2;

/** A read ends with its deadline (on the monotonic clock), and when its caller has disconnected. */
export interface Until {
  readonly deadline: number;
  readonly gone: AbortSignal;
}

/** Reads a long stretch of a tenant's history for one answer, in slices. */
export type ReadHistory = <T>(
  tenantId: string,
  until: Until,
  read: (ledgerLog: LedgerLog) => Promise<T>,
) => Promise<T>;

const tooLong = (): Fault =>
  fault(
    'log_unavailable',
    `The history of this Tenant could not be read in time. At most ${PER_TENANT} such requests of a Tenant are answered at a time: with "as_of" each reads all changes up to then, and for an unknown event id all events that the read models do not show yet.`,
  );

export const historyReads = (ledgerLog: LedgerLog, slices: NextSlice): ReadHistory => {
  const turnsOf = whileUsed(() => turns(PER_TENANT));
  return (tenantId, { deadline, gone }, read) => {
    const nextSlice = async (): Promise<Slice> => {
      const slice = await slices(tenantId);
      if (gone.aborted || monotonicMs() >= deadline) throw tooLong();
      return slice;
    };
    const work = turnsOf(tenantId, (inTurn) => inTurn(() => read(slicedLog(ledgerLog, nextSlice))));
    return beforeDeadline(work, deadline, tooLong);
  };
};
