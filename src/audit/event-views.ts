import { logView } from '../../projections/logs';
import { auditLine } from '../domain/audit-wording';
import type { Recorded, TenantEvent } from '../domain/events';
import { decode } from '../event-log/codec';
import type { LoggedEvent } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import type { Streams } from '../event-log/streams';
import type { Change } from './entity-fields';
import { hasChanges, updateChanges } from './tenant-history';
import { tenantEvent } from './tenant-view';

/** Where a clock went back, the row in `/logs` has the time of the row before it instead. */
const rowOf = (event: Recorded) => {
  const { id, tenantId, actor, recordedAt } = event;
  const { entityType, entityId, operation, message } = auditLine(event);
  return logView(tenantId, {
    id,
    ...(actor === undefined ? {} : { actor_id: actor.id, actor_type: actor.type }),
    entity_type: entityType,
    entity_id: entityId,
    operation,
    message,
    created_at: recordedAt,
  });
};

type ChangesOf = (event: LoggedEvent, decoded: Recorded<TenantEvent>) => Promise<readonly Change[]>;

/** An event with its row of the audit log and what it changed; an event that cannot be read has neither. */
export const eventViewWith = (streams: Streams, changesOf: ChangesOf) => async (event: LoggedEvent) => {
  const decoded = decode(event, streams);
  const shown = tenantEvent(event, streams);
  if (decoded.status !== 'good') return { ...shown, log: undefined, changes: undefined };
  const isChange = decoded.kind === 'tenant' && hasChanges(decoded.event);
  const changes = isChange ? await changesOf(event, decoded.event) : [];
  return { ...shown, log: rowOf(decoded.event), changes };
};

/** For events in log order: to find out what one changed, only the changes since the last one are read. */
export const eventViews = (ledgerLog: LedgerLog) => {
  const changesOf = updateChanges(ledgerLog);
  return eventViewWith(ledgerLog.streams, (_, decoded) => changesOf(decoded));
};
