import { randomUUID } from 'node:crypto';
import type { Actor, OperatorEvent } from '../domain/events';
import { refusal } from '../domain/refusal';
import { codeOf } from '../fault';
import { operatorEventOf } from '../event-log/decode';
import type { EventLog, LoggedEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import type { LiveGeneration } from './live-generations';
import { parkedTenants, type SetAside } from './projection-run';

/** What cannot be read sets nothing aside: the tenant stays parked, which everybody sees. */
const entriesOf = (logged: LoggedEvent): readonly string[] => {
  const { projections = [], eventId } = operatorEventOf(logged)?.data ?? {};
  return projections.map((projection) => `${projection} ${eventId}`);
};

export const readSetAside = async (log: EventLog, streams: Streams): Promise<SetAside> => {
  const entries = new Set<string>();
  for await (const batch of log.readStream(streams.operator()))
    for (const event of batch) for (const entry of entriesOf(event)) entries.add(entry);
  return (projection, eventId) => entries.size > 0 && entries.has(`${projection} ${eventId}`);
};

/** The projections in which a tenant is parked at this event now, and the tenant. */
const parkedAt = async (live: readonly LiveGeneration[], eventId: string) => {
  const projections: string[] = [];
  let tenantId = '';
  for (const { projector, generation } of live)
    for await (const tenant of parkedTenants(generation))
      if (tenant.event_id === eventId) {
        projections.push(projector.name);
        tenantId = tenant.tenant_id;
      }
  return { projections, tenantId };
};

const appendToEnd = async (
  log: EventLog,
  stream: string,
  event: Parameters<EventLog['append']>[1][number],
) => {
  let last = -1;
  for await (const batch of log.readStream(stream)) last = batch.at(-1)?.revision ?? last;
  await log.append(stream, [event], last < 0 ? 'no_stream' : last);
};

/** Passes over one event in the projections in which a tenant is parked at it. The log keeps it, and keeps this. */
export const setAside = async (
  { log, streams, live }: { log: EventLog; streams: Streams; live: readonly LiveGeneration[] },
  wish: { eventId: string; reason: string; actor: Actor; at: string },
): Promise<OperatorEvent['data']> => {
  const { projections, tenantId } = await parkedAt(live, wish.eventId);
  if (projections.length === 0)
    throw refusal('not_parked', `No tenant is parked at event ${wish.eventId} in any projection.`);
  const data = { eventId: wish.eventId, eventTenantId: tenantId, projections, reason: wish.reason };
  const metadata = { actor: wish.actor, at: wish.at, version: 1 };
  const event = { id: randomUUID(), type: 'EventSetAside', data, metadata };
  for (;;)
    try {
      await appendToEnd(log, streams.operator(), event);
      return data;
    } catch (error) {
      if (codeOf(error) !== 'stream_changed') throw error;
    }
};
