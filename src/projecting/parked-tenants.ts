import { yieldToEventLoop } from '../async/clock';
import type { Actor } from '../domain/events';
import { encode } from '../event-log/codec';
import { appendToEnd } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { fault } from '../fault';
import type { ParkedTenant, ReadModelSet } from '../read-models/read-models';
import type { TenantProjection } from './project-tenants';

const PAGE = 500;

/** All parked tenants, ordered by their ids. */
export async function* parkedTenants(set: Pick<ReadModelSet, 'parked'>): AsyncGenerator<ParkedTenant> {
  let after: string | undefined;
  do {
    const page: readonly ParkedTenant[] = await set.parked(PAGE, after);
    yield* page;
    after = page.at(-1)?.tenant_id;
  } while (after !== undefined);
}

/**
 * Applies the next waiting events of a tenant, and frees it after the last one. Both of its streams are read up to where
 * the log was followed, since all of that waits.
 */
const retryNext = async (
  { set, progress, read, commit, onParked }: TenantProjection,
  tenantId: string,
): Promise<'more' | 'done'> => {
  const before = (await progress([tenantId], true)).get(tenantId);
  const { to, next } = await set.control();
  const mark = before?.parked;
  if (mark === undefined || next !== undefined) return 'done';
  const readUpTo = mark.position > (to?.position ?? '') ? mark.position : (to?.position ?? '');
  const { events, isRest } = await read(tenantId, before, readUpTo);
  const outcome = await commit([{ tenantId, before, events, waiting: { readUpTo, isRest } }]);
  if (outcome === 'superseded') return 'done';
  if (outcome.overtaken.length > 0) return 'more';
  const parked = outcome.progress.get(tenantId)?.parked;
  if (parked === mark) return 'more';
  if (parked !== undefined) onParked(parked);
  return 'done';
};

/**
 * Retries the tenants that another version of the program parked and may have parked wrongly, those whose event has been
 * set aside, and those that are requested. Each continues where it was parked, in order.
 */
export const retryDue = async (
  projection: TenantProjection,
  isRequested: (tenantId: string) => boolean = () => false,
): Promise<void> => {
  if ((await projection.set.control()).marks === 0) return;
  const { setAside, program: own } = await projection.renewSetAside();
  const isDue = ({ cause, tenant_id, event_id, program }: ParkedTenant): boolean =>
    isRequested(tenant_id) ||
    program !== own ||
    (cause === 'missing_events' ? setAside.gapBefore : setAside.event)(tenant_id, event_id);
  for await (const tenant of parkedTenants(projection.set))
    if (!isDue(tenant)) projection.onParked(tenant);
    else while ((await retryNext(projection, tenant.tenant_id)) === 'more') await yieldToEventLoop();
};

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
