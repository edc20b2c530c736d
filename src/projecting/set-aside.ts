import type { Actor } from '../domain/events';
import { appendToEnd } from '../event-log/append-to-end';
import { encode } from '../event-log/codec';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault } from '../fault';
import type { ReadModelSet } from '../read-models/read-models';
import { parkedTenants, type ParkedTenant } from './tenant-progress';

const parkedAt = async (set: ReadModelSet, eventId: string): Promise<ParkedTenant> => {
  for await (const tenant of parkedTenants(set)) if (tenant.event_id === eventId) return tenant;
  throw fault('not_parked', `No tenant is parked at event ${eventId}.`);
};

/**
 * Records that the event at which a tenant is parked is skipped, or that the gap before it is accepted. The tenant goes
 * on when it is retried. If several tenants are parked at events with this id, this is about one of them.
 */
export const setAside = async (
  { log, streams, set }: LedgerLog & { readonly set: ReadModelSet },
  { eventId, reason, actor, at }: Record<'eventId' | 'reason' | 'at', string> & { readonly actor: Actor },
): Promise<ParkedTenant> => {
  const tenant = await parkedAt(set, eventId);
  const type = tenant.cause === 'missing_events' ? 'GapAccepted' : 'EventSetAside';
  const data = { eventId, eventTenantId: tenant.tenant_id, reason };
  await appendToEnd(log, streams.operator(), [encode({ type, data }, { actor, at })]);
  return tenant;
};
