import { auditLine, sourceOf, type Source } from '../domain/audit-wording';
import { decode } from '../event-log/codec';
import {
  isJsonObject,
  upTo,
  type Batch,
  type EventLog,
  type LoggedEvent,
  type Position,
  type ReadFrom,
} from '../event-log/event-log';
import type { LedgerLog, Streams } from '../event-log/streams';
import { countedAddress } from '../limits/client-address';

type TextCondition = 'event' | 'actor' | 'operation' | 'trace' | 'key' | 'client' | 'since' | 'until';

/** Selects events that meet every condition. A condition with several values needs one of them. */
export interface EventFilter extends Readonly<Partial<Record<TextCondition, string | undefined>>> {
  readonly tenants?: readonly string[] | undefined;
  readonly types?: readonly string[] | undefined;
  readonly entity?: { readonly type?: string | undefined; readonly id?: string | undefined } | undefined;
  readonly source?: Source | undefined;
}

type Condition = (event: LoggedEvent) => boolean;

const member = (value: unknown, name: string): unknown => (isJsonObject(value) ? value[name] : undefined);

/** An address as it is recorded, however it is spelt here: of IPv6, its network. Undefined: it is none. */
export const clientFrom = (text: string): string | undefined =>
  countedAddress(text.includes(':') ? text.replace(/\/64$/, '') : text);

const isFrom = (client: unknown, address: string): boolean => {
  const recorded = member(client, 'address');
  return recorded === address || (typeof recorded === 'string' && clientFrom(recorded) === address);
};

const byClient =
  (address: string): Condition =>
  ({ metadata }) => {
    const clients = [member(metadata, 'client'), member(metadata, 'clients')].flat();
    return clients.some((client) => isFrom(client, address));
  };

const isText = (value: unknown, wanted: string): boolean =>
  typeof value === 'string' && value.toLowerCase() === wanted;

/** Events that cannot be read have no entity and no operation. */
const byAuditLine = ({ entity, operation }: EventFilter, streams: Streams, onUnreadable: () => void) => {
  const type = entity?.type?.toLowerCase();
  const id = entity?.id;
  return (event: LoggedEvent): boolean => {
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
const conditionsOf = (filter: EventFilter, streams: Streams, onUnreadable: () => void) => {
  const { event: id, types, actor, trace, source, key, client, since, until, entity, operation } = filter;
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
  if (source !== undefined)
    conditions.push(({ type, stream }) => {
      const owner = streams.parse(stream);
      return owner !== undefined && sourceOf(type, owner.kind) === source;
    });
  if (key !== undefined)
    conditions.push(({ data, metadata }) =>
      [metadata, data].some((from) => isText(member(from, 'keyId'), key)),
    );
  if (client !== undefined) conditions.push(byClient(client));
  if (entity !== undefined || operation !== undefined)
    conditions.push(byAuditLine(filter, streams, onUnreadable));
  return conditions;
};

export interface EventRange extends ReadFrom {
  /** The last position to read, inclusive. */
  readonly upTo?: Position | undefined;
  /** The maximum number of events. */
  readonly limit?: number | undefined;
}

/** One batch of the log: the events that match, and how far it was read. */
export interface FoundEvents {
  readonly events: readonly LoggedEvent[];
  /** The number of events read, matching or not. */
  readonly read: number;
  /** The last event read, matching or not. A batch that is empty has none. */
  readonly last: LoggedEvent | undefined;
}

/** Of a single tenant, only its own events are read, except that new ones are found in the whole log. */
async function* readRange(log: EventLog, { tenants }: EventFilter, from: ReadFrom): AsyncGenerator<Batch> {
  const [tenantId, ...others] = tenants ?? [];
  if (tenantId === undefined || others.length > 0) return yield* log.readAll(from);
  const { after = '', follow, signal } = from;
  if (follow !== true) return yield* log.readTenant(tenantId, from);
  const head = (await log.head())?.position ?? '';
  yield* upTo(log.readTenant(tenantId, from), head);
  yield* log.readAll({ after: head > after ? head : after, follow, signal });
}

/** A predicate for events of our own streams that match the filter. */
const matcher = (filter: EventFilter, streams: Streams, onUnreadable: () => void) => {
  const tenants = filter.tenants === undefined ? undefined : new Set(filter.tenants);
  const conditions = conditionsOf(filter, streams, onUnreadable);
  return (event: LoggedEvent): boolean => {
    if (!streams.holds(event.stream)) return false;
    if (tenants !== undefined && !tenants.has(streams.parse(event.stream)?.tenantId ?? '')) return false;
    return conditions.every((holds) => holds(event));
  };
};

export interface FindOptions {
  /** The events to look at. By default they are read from the log. */
  readonly batches?: AsyncIterable<Batch> | undefined;
  /** Called for an event that could not be decoded, and so not compared with an entity or operation. */
  onUnreadable(): void;
}

/** The matching events of our own streams, in log order, batch by batch until there are as many as wanted. */
export async function* findEvents(
  { log, streams }: LedgerLog,
  filter: EventFilter,
  range: EventRange,
  { batches = readRange(log, filter, range), onUnreadable }: FindOptions,
): AsyncGenerator<FoundEvents> {
  const matches = matcher(filter, streams, onUnreadable);
  let remaining = range.limit ?? Infinity;
  for await (const batch of range.upTo === undefined ? batches : upTo(batches, range.upTo)) {
    const events = batch.filter(matches).slice(0, remaining);
    remaining -= events.length;
    yield { events, read: batch.length, last: remaining === 0 ? events.at(-1) : batch.at(-1) };
    if (remaining === 0) return;
  }
}
