import type { Actor, OperatorEvent } from '../domain/events';
import { appendToEnd } from '../event-log/append-to-end';
import { encode } from '../event-log/codec';
import type { NewEvent } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { operatorEvents } from '../event-log/operator-events';
import { fault } from '../fault';
import type { LiveGeneration } from './live-generations';
import { parkedTenants, type ParkedTenant } from './parked-tenants';

/** What the operator has set aside, per projection. Read before projecting; rebuild and verify follow it too. */
export interface SetAside {
  /** Whether to skip this event. Its id may occur in other tenants, too. */
  readonly event: (projection: string, tenantId: string, eventId: string) => boolean;
  /** Whether to apply this event although events before it are missing. */
  readonly gapBefore: (projection: string, tenantId: string, eventId: string) => boolean;
}

type OperatorEventType = OperatorEvent['type'];

const entryOf = (type: OperatorEventType, projection: string, tenantId: string, eventId: string): string =>
  `${type} ${projection} ${tenantId} ${eventId}`;

export const readSetAside = async (ledgerLog: LedgerLog): Promise<SetAside> => {
  const entries = new Set<string>();
  for await (const { type, data } of operatorEvents(ledgerLog))
    for (const projection of data.projections)
      entries.add(entryOf(type, projection, data.eventTenantId, data.eventId));
  const has = (type: OperatorEventType) => (projection: string, tenantId: string, eventId: string) =>
    entries.size > 0 && entries.has(entryOf(type, projection, tenantId, eventId));
  return { event: has('EventSetAside'), gapBefore: has('GapAccepted') };
};

/** The result of setting aside an event. */
export interface SetAsideResult {
  readonly tenantId: string;
  /** The projections that skip the event. */
  readonly skipped: readonly string[];
  /** The projections that apply it although events before it are missing. */
  readonly gapAccepted: readonly string[];
}

interface FoundParked {
  readonly projection: string;
  readonly tenant: ParkedTenant;
}

/** The projections in which an event with this id parks its tenant now. */
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
 * Unparks a tenant in the projections in which it is parked at this event: they skip the event or accept the gap before
 * it. The log keeps the event, and records this decision. If several tenants are parked at events with this id, one of
 * them is unparked.
 */
export const setAside = async (
  { log, streams, live }: LedgerLog & { live: readonly LiveGeneration[] },
  input: { eventId: string; reason: string; actor: Actor; at: string },
): Promise<SetAsideResult> => {
  const { eventId, reason, actor, at } = input;
  const parked = await parkedAt(live, eventId);
  const tenantId = parked[0]?.tenant.tenant_id;
  if (tenantId === undefined)
    throw fault('not_parked', `No tenant is parked at event ${eventId} in any projection.`);
  const parkedBy = (cause: ParkedTenant['cause']): readonly string[] =>
    parked
      .filter(({ tenant }) => tenant.tenant_id === tenantId && tenant.cause === cause)
      .map(({ projection }) => projection);
  const [skipped, gapAccepted] = [parkedBy('bad_event'), parkedBy('missing_events')];
  const eventOf = (type: OperatorEventType, projections: readonly string[]): readonly NewEvent[] => {
    const data = { eventId, eventTenantId: tenantId, projections, reason };
    return projections.length === 0 ? [] : [encode({ type, data }, { actor, at })];
  };
  const events = [...eventOf('EventSetAside', skipped), ...eventOf('GapAccepted', gapAccepted)];
  await appendToEnd(log, streams.operator(), events);
  return { tenantId, skipped, gapAccepted };
};
