import { auditLine } from '../domain/audit-wording';
import { decode } from '../event-log/codec';
import type { EventLog, Head, LoggedEvent, Position, ReadFrom } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { upTo } from '../event-log/reading';
import type { Streams } from '../event-log/streams';
import { isJsonObject } from '../json';
import { timeOf } from './raw-event';

/** Which events are asked for: all of the conditions hold, and of those that list several values, one. */
export interface EventFilter {
  readonly tenants?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly actor?: string | undefined;
  readonly entity?: { readonly type: string; readonly id: string } | undefined;
  readonly operation?: string | undefined;
  readonly trace?: string | undefined;
  /** Asked for with this key, or about it. */
  readonly key?: string | undefined;
  /** Recorded at this time or later. */
  readonly since?: string | undefined;
  /** Recorded before this time. */
  readonly until?: string | undefined;
}

type Condition = (event: LoggedEvent) => boolean;

const member = (value: unknown, name: string): unknown => (isJsonObject(value) ? value[name] : undefined);

/** Events that cannot be read have no entity and no operation. */
const byAuditLine = (
  { entity, operation }: EventFilter,
  streams: Streams,
  onUnreadable: () => void,
): Condition => {
  const wanted = entity === undefined ? undefined : { ...entity, type: entity.type.toLowerCase() };
  return (event) => {
    const decoded = decode(event, streams);
    if (decoded.status === 'bad') onUnreadable();
    if (decoded.status !== 'good') return false;
    const line = auditLine(decoded.event);
    return (
      (wanted === undefined || (line.entityType === wanted.type && line.entityId === wanted.id)) &&
      (operation === undefined || line.operation === operation.toLowerCase())
    );
  };
};

/** The cheap conditions come first: reading an event's entity costs the most. */
const conditionsOf = (
  filter: EventFilter,
  streams: Streams,
  onUnreadable: () => void,
): readonly Condition[] => {
  const { types, actor, trace, key, since, until, entity, operation } = filter;
  const conditions: Condition[] = [];
  if (types !== undefined) {
    const wanted = new Set(types);
    conditions.push(({ type }) => wanted.has(type));
  }
  if (since !== undefined) conditions.push((event) => timeOf(event) >= since);
  if (until !== undefined) conditions.push((event) => timeOf(event) < until);
  if (actor !== undefined)
    conditions.push(({ metadata }) => member(member(metadata, 'actor'), 'id') === actor);
  if (trace !== undefined) conditions.push(({ metadata }) => member(metadata, 'traceId') === trace);
  if (key !== undefined)
    conditions.push(
      ({ data, metadata }) => member(metadata, 'keyId') === key || member(data, 'keyId') === key,
    );
  if (entity !== undefined || operation !== undefined)
    conditions.push(byAuditLine(filter, streams, onUnreadable));
  return conditions;
};

export interface EventRange extends ReadFrom {
  /** The last position that is read. */
  readonly upTo?: Position | undefined;
}

/** One step of reading: the events that match, and how far the log has been read. */
export interface ReadEvents {
  readonly events: readonly LoggedEvent[];
  readonly read: number;
  readonly position: Position;
  /** The last event of the log that was read. */
  readonly last: Head;
}

async function* batchesOf(log: EventLog, { tenants, since }: EventFilter, from: ReadFrom) {
  const [tenantId, ...others] = tenants ?? [];
  if (tenantId !== undefined && others.length === 0) return yield* log.readTenant(tenantId, from);
  const canSkip = since !== undefined && from.after === undefined;
  const after = canSkip ? await log.positionBefore?.(since) : from.after;
  yield* log.readAll({ ...from, after });
}

/** Whether an event is one of ours that the filter asks for. */
export const wantedBy = (
  filter: EventFilter,
  { streams }: Pick<LedgerLog, 'streams'>,
  onUnreadable: () => void,
): ((event: LoggedEvent) => boolean) => {
  const tenants = filter.tenants === undefined ? undefined : new Set(filter.tenants);
  const conditions = conditionsOf(filter, streams, onUnreadable);
  return (event) => {
    if (!streams.holds(event.stream)) return false;
    if (tenants !== undefined && !tenants.has(streams.parse(event.stream)?.tenantId ?? '')) return false;
    return conditions.every((holds) => holds(event));
  };
};

/** Of our own streams, in the order of the log. One tenant's events are read at their own cost. */
export async function* findEvents(
  { log, streams }: LedgerLog,
  filter: EventFilter,
  range: EventRange,
  onUnreadable: () => void,
): AsyncIterable<ReadEvents> {
  const isWanted = wantedBy(filter, { streams }, onUnreadable);
  for await (const batch of upTo(batchesOf(log, filter, range), range.upTo)) {
    const { position, id: eventId } = batch.at(-1) as LoggedEvent;
    yield { events: batch.filter(isWanted), read: batch.length, position, last: { position, eventId } };
  }
}

/** How far a reader has come, and how many more events it wants. */
export interface Reached {
  position: Position | undefined;
  left: number;
}

/** The steps until a reader has all the events that it wants. */
export async function* upToLimit<Step extends Pick<ReadEvents, 'events' | 'position'>>(
  steps: AsyncIterable<Step>,
  reached: Reached,
): AsyncGenerator<Step> {
  for await (const step of steps) {
    const events = step.events.slice(0, reached.left);
    reached.left -= events.length;
    const position = (reached.left > 0 ? undefined : events.at(-1)?.position) ?? step.position;
    reached.position = position;
    yield { ...step, events, position };
    if (reached.left === 0) return;
  }
}
