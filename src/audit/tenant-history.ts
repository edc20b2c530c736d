import { isoNow } from '../async/clock';
import { boundedCache } from '../bounded-cache';
import { auditLine } from '../domain/audit-wording';
import type { Recorded, TenantEvent } from '../domain/events';
import type { Tenant } from '../domain/tenant';
import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { codeOf } from '../fault';
import { emptyFold, foldingStream, tenantEventOf, type FoldingStream } from '../ledger/fold';
import { changesBetween, entityFields, type Change } from './entity-fields';
import { lastUpTo } from './event-places';

/**
 * A moment in a tenant's history. A time means the state before the first event recorded after it: the order comes from
 * the log, and a wrong clock does not reorder anything.
 */
export type Moment = { readonly time: string } | { readonly position: Position };

const isAfter = (event: LoggedEvent, moment: Moment): boolean =>
  'time' in moment ? event.recordedAt > moment.time : event.position > moment.position;

/** Whether an event replaces or ends something, which is then shown. The data of creations already says everything. */
const REPLACES: Readonly<Record<TenantEvent['type'], boolean>> = {
  TenantCreated: false,
  TenantUpdated: true,
  TenantPlanChanged: true,
  TenantDeleted: true,
  ApplicationCreated: false,
  ApplicationRenamed: true,
  ApplicationPermissionsSet: true,
  ApplicationDeleted: true,
  KeyAdded: false,
  KeyExpirySet: true,
  KeyRevoked: true,
};

export const hasChanges = ({ type }: TenantEvent): boolean => REPLACES[type];

/** Applies the next event. Returns the entity before and after it, and what it changed. */
const takeWithEffect = (folding: FoldingStream, event: Recorded<TenantEvent>) => {
  const { entityType, entityId } = auditLine(event);
  const before = entityFields(folding.fold().tenant, entityType, entityId);
  folding.take(event);
  const after = entityFields(folding.fold().tenant, entityType, entityId);
  return { before, after, changes: changesBetween(before, after) };
};

const takeWithChanges = (folding: FoldingStream, event: Recorded<TenantEvent>): readonly Change[] => {
  if (hasChanges(event)) return takeWithEffect(folding, event).changes;
  folding.take(event);
  return [];
};

/** An event of a tenant's own stream, and what it changed. */
const entryOf = (event: Recorded<TenantEvent>, changes: readonly Change[]) => {
  const { entityType, entityId, operation } = auditLine(event);
  return {
    at: event.recordedAt,
    event_id: event.id,
    type: event.type,
    position: event.position,
    revision: event.revision,
    entity_type: entityType,
    entity_id: entityId,
    operation,
    actor: event.actor,
    trace_id: event.traceId,
    key_id: event.keyId,
    changes,
  };
};
export type HistoryEntry = ReturnType<typeof entryOf>;

export interface PastTenant {
  readonly tenant: Tenant;
  /** Keys expire by time, so a position counts as the time of the tenant's last event up to it, in either stream. */
  readonly time: string;
}

const timeAt = async (
  { log, streams }: LedgerLog,
  tenantId: string,
  moment: Moment | undefined,
  own: LoggedEvent | undefined,
): Promise<string> => {
  if (moment === undefined) return isoNow();
  if ('time' in moment) return moment.time;
  const { position } = moment;
  const isOwn = own?.position === position;
  const activity = isOwn ? undefined : await lastUpTo(log, streams.activity(tenantId), position);
  const last = (activity?.position ?? '') > (own?.position ?? '') ? activity : own;
  return last === undefined ? '' : last.recordedAt;
};

/**
 * The tenant at a moment, by default now. Throws `tenant_unreadable`. Finding out what each event changed costs several
 * times as much, and is done only for a caller who wants the entries.
 */
export const tenantAt = async (
  { log, streams }: LedgerLog,
  tenantId: string,
  moment?: Moment,
  onEntry?: (entry: HistoryEntry) => void,
): Promise<PastTenant> => {
  const folding = foldingStream(emptyFold, tenantId);
  let last: LoggedEvent | undefined;
  const then = async (): Promise<PastTenant> => ({
    tenant: folding.fold().tenant,
    time: await timeAt({ log, streams }, tenantId, moment, last),
  });
  for await (const batch of log.readStream(streams.tenant(tenantId)))
    for (const logged of batch) {
      if (moment !== undefined && isAfter(logged, moment)) return then();
      last = logged;
      const event = tenantEventOf(logged, folding.revision(), tenantId, streams);
      if (onEntry === undefined) folding.take(event);
      else onEntry(entryOf(event, takeWithChanges(folding, event)));
    }
  return then();
};

const foldUpTo = async (
  { log, streams }: LedgerLog,
  folding: FoldingStream,
  { tenantId, revision }: Recorded<TenantEvent>,
): Promise<void> => {
  for await (const batch of log.readStream(streams.tenant(tenantId), folding.revision()))
    for (const logged of batch) {
      if (logged.revision >= revision) return;
      folding.take(tenantEventOf(logged, folding.revision(), tenantId, streams));
    }
};

/** The entity before and after an event of a tenant's own stream, and what it changed. Throws `tenant_unreadable`. */
export const effectOf = async (ledgerLog: LedgerLog, event: Recorded<TenantEvent>) => {
  const folding = foldingStream(emptyFold, event.tenantId);
  await foldUpTo(ledgerLog, folding, event);
  return takeWithEffect(folding, event);
};

/** The tenants kept in memory while a log is read: the most recently updated ones. */
const MAX_TENANTS = 200;

/**
 * What each update changed, for events in log order. Empty if the tenant's stream cannot be read, so that the event
 * itself can still be shown.
 */
export const updateChanges = (ledgerLog: LedgerLog) => {
  const foldings = boundedCache<FoldingStream>(MAX_TENANTS);

  return async (event: Recorded<TenantEvent>): Promise<readonly Change[]> => {
    if (!hasChanges(event)) return [];
    const folding = foldings.get(event.tenantId) ?? foldingStream(emptyFold, event.tenantId);
    foldings.put(event.tenantId, folding);
    try {
      await foldUpTo(ledgerLog, folding, event);
      return takeWithChanges(folding, event);
    } catch (error) {
      foldings.delete(event.tenantId);
      if (codeOf(error) === 'tenant_unreadable') return [];
      throw error;
    }
  };
};
