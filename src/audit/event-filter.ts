import { auditLine } from '../domain/audit-wording';
import { decode } from '../event-log/codec';
import type { EventLog, LoggedEvent, Position, ReadFrom } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { upTo } from '../event-log/reading';
import type { Streams } from '../event-log/streams';
import { isJsonObject } from '../json';
import type { Place } from './event-places';

export interface EntityFilter {
  readonly type?: string | undefined;
  readonly id?: string | undefined;
}

/** Selects events that meet every condition. A condition with several values needs one of them. */
export interface EventFilter {
  /** The event with this id. */
  readonly event?: string | undefined;
  readonly tenants?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly actor?: string | undefined;
  /** Of this type, with this id, or both. */
  readonly entity?: EntityFilter | undefined;
  readonly operation?: string | undefined;
  readonly trace?: string | undefined;
  /** Caused with this key, or about it. */
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
  const [type, id] = [entity?.type?.toLowerCase(), entity?.id];
  return (event) => {
    const decoded = decode(event, streams);
    if (decoded.status === 'bad') onUnreadable();
    if (decoded.status !== 'good') return false;
    const line = auditLine(decoded.event);
    return (
      (type === undefined || line.entityType === type) &&
      (id === undefined || line.entityId === id) &&
      (operation === undefined || line.operation === operation.toLowerCase())
    );
  };
};

/** The cheap conditions come first: decoding an event to get its entity costs the most. */
const conditionsOf = (
  filter: EventFilter,
  streams: Streams,
  onUnreadable: () => void,
): readonly Condition[] => {
  const { event: id, types, actor, trace, key, since, until, entity, operation } = filter;
  const conditions: Condition[] = [];
  if (id !== undefined) conditions.push((event) => event.id === id);
  if (types !== undefined) {
    const wanted = new Set(types);
    conditions.push(({ type }) => wanted.has(type));
  }
  if (since !== undefined) conditions.push(({ recordedAt }) => recordedAt >= since);
  if (until !== undefined) conditions.push(({ recordedAt }) => recordedAt < until);
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
  /** The last position to read, inclusive. */
  readonly upTo?: Position | undefined;
}

/** One batch of the log: the events that match, and how far it was read. */
export interface ReadEvents {
  readonly events: readonly LoggedEvent[];
  /** The number of events read, matching or not. */
  readonly read: number;
  /** The last event read, matching or not. */
  readonly last: LoggedEvent;
}

async function* batchesOf(log: EventLog, { tenants }: EventFilter, from: ReadFrom) {
  const [tenantId, ...others] = tenants ?? [];
  if (tenantId === undefined || others.length > 0) return yield* log.readAll(from);
  const { after = '', follow, signal } = from;
  if (follow !== true) return yield* log.readTenant(tenantId, from);
  const head = (await log.head())?.position ?? '';
  yield* upTo(log.readTenant(tenantId, from), head);
  yield* log.readAll({ after: head > after ? head : after, follow, signal });
}

/** A predicate for events of our own streams that match the filter. */
export const wantedBy = (
  filter: EventFilter,
  streams: Streams,
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

/** The matching events of our own streams, in log order. For a single tenant, reads only the events of that tenant. */
export async function* findEvents(
  { log, streams }: LedgerLog,
  filter: EventFilter,
  range: EventRange,
  onUnreadable: () => void,
): AsyncIterable<ReadEvents> {
  const isWanted = wantedBy(filter, streams, onUnreadable);
  for await (const batch of upTo(batchesOf(log, filter, range), range.upTo)) {
    yield { events: batch.filter(isWanted), read: batch.length, last: batch.at(-1) as LoggedEvent };
  }
}

/** How far a reader has read, and how many more events it wants. */
export interface Reached {
  place: Place | undefined;
  remaining: number;
}

/** Passes batches on until the reader has as many events as it wants. Updates `reached`. */
export async function* upToLimit<Step extends Pick<ReadEvents, 'events' | 'last'>>(
  steps: AsyncIterable<Step>,
  reached: Reached,
): AsyncGenerator<Step> {
  for await (const step of steps) {
    const events = step.events.slice(0, reached.remaining);
    reached.remaining -= events.length;
    const last = (reached.remaining > 0 ? undefined : events.at(-1)) ?? step.last;
    reached.place = last;
    yield { ...step, events, last };
    if (reached.remaining === 0) return;
  }
}
