import type { Tenant } from '../domain/tenant';
import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { emptyFold, foldingStream, tenantEventOf } from '../ledger/fold';
import { lastUpTo } from './event-places';

/**
 * A moment in a tenant's history. A time means the state before the first event recorded after it: the order comes from
 * the log, and a wrong clock does not reorder anything.
 */
export type Moment = { readonly time: string } | { readonly position: Position };

const isAfter = (event: LoggedEvent, moment: Moment): boolean =>
  'time' in moment ? event.recordedAt > moment.time : event.position > moment.position;

export interface PastTenant {
  readonly tenant: Tenant;
  /** Keys expire by time, so a position counts as the time of the tenant's last event up to it, in either stream. */
  readonly time: string;
}

const timeAt = async (
  { log, streams }: LedgerLog,
  tenantId: string,
  moment: Moment,
  own: LoggedEvent | undefined,
): Promise<string> => {
  if ('time' in moment) return moment.time;
  const { position } = moment;
  const isOwn = own?.position === position;
  const activity = isOwn ? undefined : await lastUpTo(log, streams.activity(tenantId), position);
  const last = (activity?.position ?? '') > (own?.position ?? '') ? activity : own;
  return last === undefined ? '' : last.recordedAt;
};

/** The tenant at a moment. Throws `tenant_unreadable`. */
export const tenantAt = async (
  { log, streams }: LedgerLog,
  tenantId: string,
  moment: Moment,
): Promise<PastTenant> => {
  const folding = foldingStream(emptyFold, tenantId);
  let last: LoggedEvent | undefined;
  const then = async (): Promise<PastTenant> => ({
    tenant: folding.fold().tenant,
    time: await timeAt({ log, streams }, tenantId, moment, last),
  });
  for await (const batch of log.readStream(streams.tenant(tenantId)))
    for (const logged of batch) {
      if (isAfter(logged, moment)) return then();
      last = logged;
      folding.take(tenantEventOf(logged, folding.revision(), tenantId, streams));
    }
  return then();
};
