import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { emptyFold, foldEvent, tenantEventOf } from '../ledger/fold';

/**
 * A moment in a tenant's history: right after the event at a position or, without one, before the first event recorded
 * after a time. The order comes from the log, and a wrong clock does not reorder anything. Keys expire by time: that of
 * a position is the recorded time of its event.
 */
export interface Moment {
  readonly time: string;
  readonly position?: Position;
}

const isAfter = (event: LoggedEvent, { time, position }: Moment): boolean =>
  position === undefined ? event.recordedAt > time : event.position > position;

/** The tenant at a moment. Throws `tenant_unreadable`. */
export const tenantAt = async ({ log, streams }: LedgerLog, tenantId: string, moment: Moment) => {
  const fold = emptyFold();
  for await (const batch of log.readStream(streams.tenant(tenantId)))
    for (const logged of batch) {
      if (isAfter(logged, moment)) return fold.tenant;
      foldEvent(fold, tenantEventOf(logged, fold.revision, tenantId, streams));
    }
  return fold.tenant;
};
