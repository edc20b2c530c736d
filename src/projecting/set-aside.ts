import type { Actor, OperatorEvent } from '../domain/events';
import { appendToEnd } from '../event-log/append-to-end';
import { encode, operatorEventOf } from '../event-log/codec';
import type { EventLog, LoggedEvent, NewEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { fault } from '../fault';
import type { ParkedTenant } from './fold-batch';
import type { LiveGeneration } from './live-generations';
import { parkedTenants, type SetAside } from './projection-run';

type OperatorEventType = OperatorEvent['type'];

const entryOf = (type: OperatorEventType, projection: string, eventId: string): string =>
  `${type} ${projection} ${eventId}`;

/** What cannot be read sets nothing aside: the tenant stays parked, which everybody sees. */
const entriesOf = (logged: LoggedEvent): readonly string[] => {
  const event = operatorEventOf(logged);
  if (event === undefined) return [];
  return event.data.projections.map((projection) => entryOf(event.type, projection, event.data.eventId));
};

export const readSetAside = async (log: EventLog, streams: Streams): Promise<SetAside> => {
  const entries = new Set<string>();
  for await (const batch of log.readStream(streams.operator()))
    for (const event of batch) for (const entry of entriesOf(event)) entries.add(entry);
  const has = (type: OperatorEventType) => (projection: string, eventId: string) =>
    entries.size > 0 && entries.has(entryOf(type, projection, eventId));
  return { event: has('EventSetAside'), gapBefore: has('GapAccepted') };
};

/** What was done about an event at which a tenant was parked. */
export interface DoneAside {
  readonly tenantId: string;
  /** The projections that pass over the event. */
  readonly passedOver: readonly string[];
  /** The projections that apply it although events before it are missing. */
  readonly gapAccepted: readonly string[];
}

interface FoundParked {
  readonly projection: string;
  readonly tenant: ParkedTenant;
}

/** Where a tenant is parked at this event now. */
const parkedAt = async (
  live: readonly LiveGeneration[],
  eventId: string,
): Promise<readonly FoundParked[]> => {
  const found: FoundParked[] = [];
  for (const { projector, generation } of live)
    for await (const tenant of parkedTenants(generation))
      if (tenant.event_id === eventId) found.push({ projection: projector.name, tenant });
  return found;
};

/**
 * Frees a tenant in the projections in which it is parked at an event: the event is passed over, or the gap before it is
 * accepted. The log keeps the event, and keeps this.
 */
export const setAside = async (
  { log, streams, live }: { log: EventLog; streams: Streams; live: readonly LiveGeneration[] },
  input: { eventId: string; reason: string; actor: Actor; at: string },
): Promise<DoneAside> => {
  const { eventId, reason, actor, at } = input;
  const found = await parkedAt(live, eventId);
  const [first] = found;
  if (first === undefined)
    throw fault('not_parked', `No tenant is parked at event ${eventId} in any projection.`);
  const parkedBy = (cause: ParkedTenant['cause']): readonly string[] =>
    found.filter(({ tenant }) => tenant.cause === cause).map(({ projection }) => projection);
  const [tenantId, passedOver, gapAccepted] = [
    first.tenant.tenant_id,
    parkedBy('bad_event'),
    parkedBy('missing_events'),
  ];
  const eventOf = (type: OperatorEventType, projections: readonly string[]): readonly NewEvent[] => {
    const data = { eventId, eventTenantId: tenantId, projections, reason };
    return projections.length === 0 ? [] : [encode({ type, data }, { actor, at })];
  };
  const events = [...eventOf('EventSetAside', passedOver), ...eventOf('GapAccepted', gapAccepted)];
  await appendToEnd(log, streams.operator(), events);
  return { tenantId, passedOver, gapAccepted };
};
