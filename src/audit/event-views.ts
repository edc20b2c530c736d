import { logView, rowContentOf } from '../../projections/logs';
import type { FieldChange, Recorded } from '../domain/events';
import { decode } from '../event-log/codec';
import { type LoggedEvent, isJsonObject } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { jsonOf, publicData, withoutOsUser } from '../evidence/statement';
import { tenantPosition } from './event-places';

/** Events as the operator sees them, and as their tenant does. */

/** Never with the digest of a key. Keys of services are added in the operator's own stream. */
const shownData = ({ type, data }: LoggedEvent, isOfTenant: boolean): unknown =>
  publicData(type === 'ServiceKeyAdded' && !isOfTenant ? 'KeyAdded' : type, data);

/**
 * An event with everything that is stored, in the names of the API. Absent members are undefined, and so omitted from the
 * JSON, rather than missing: objects of one shape are serialised fastest.
 */
export const rawEvent = (event: LoggedEvent, streams: Streams) => {
  const metadata = isJsonObject(event.metadata) ? event.metadata : {};
  const { version, actor, traceId, keyId } = metadata;
  const tenantId = streams.parse(event.stream)?.tenantId;
  return {
    id: event.id,
    type: event.type,
    version: typeof version === 'number' ? version : 1,
    tenant_id: tenantId, // none in the operator's own stream
    stream: event.stream,
    revision: event.revision,
    position: event.position,
    recorded_at: event.recordedAt,
    actor,
    trace_id: traceId,
    key_id: keyId,
    data: shownData(event, tenantId !== undefined),
    metadata: jsonOf(event.metadata ?? {}),
  };
};

export type RawEvent = ReturnType<typeof rawEvent>;

/** Where a clock went back, the row in `/logs` has the time of the row before it instead. */
const rowOf = (event: Recorded) =>
  logView(event.tenantId, { ...rowContentOf(event), created_at: event.recordedAt });

/** What the decision changed, as recorded with an event that can be read. Facts have nothing. */
export const changesIn = ({ metadata }: LoggedEvent): readonly FieldChange[] =>
  (metadata as { readonly changes?: readonly FieldChange[] } | undefined)?.changes ?? [];

/**
 * The event as its tenant sees it: without the tenant id, which is always the same, with a position of its own, its row of
 * the audit log and what it changed. An event that cannot be read has neither of these two.
 */
export const tenantEvent = (event: LoggedEvent, streams: Streams) => {
  const shown = { ...event, metadata: withoutOsUser(event.metadata) };
  const { tenant_id: _, ...raw } = rawEvent(shown, streams);
  const decoded = decode(event, streams);
  return {
    ...raw,
    position: tenantPosition(event, streams),
    log: decoded.status === 'good' ? rowOf(decoded.event) : undefined,
    changes: decoded.status === 'good' ? changesIn(event) : undefined,
  };
};

export type TenantEvent = ReturnType<typeof tenantEvent>;
