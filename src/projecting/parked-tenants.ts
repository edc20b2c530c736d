import { isDeepStrictEqual } from 'node:util';
import type { Reader } from '../../projections/projector';
import type { Actor, StreamKind } from '../domain/events';
import { encode } from '../event-log/codec';
import { appendToEnd, type LoggedEvent, type Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { fault } from '../fault';
import { PARKED, STREAMS, rowsOf, type ReadModelSet } from '../read-models/read-models';
import {
  tenantBatchOf,
  documentCache,
  foldWaiting,
  parkedKey,
  type Folding,
  type ParkedTenant,
  type Retried,
  type StreamDocument,
} from './fold-batch';

/** Why `fold-batch.ts` has parked this tenant, if it has. There is no need to ask while `parked` is 0 in the control state. */
export const findParked = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
): Promise<ParkedTenant | undefined> =>
  (await reader.get(tenantId, PARKED, parkedKey(tenantId).key)) as unknown as ParkedTenant | undefined;

/** All parked tenants, ordered by their ids. */
export async function* parkedTenants(set: Pick<ReadModelSet, 'scan'>): AsyncGenerator<ParkedTenant> {
  for await (const { text } of rowsOf(set, PARKED)) yield JSON.parse(text) as ParkedTenant;
}

/** The last revision of a tenant's stream that a set has applied, or -1. */
export const lastRevision = async (
  reader: Pick<Reader, 'get'>,
  tenantId: string,
  kind: StreamKind,
): Promise<number> =>
  ((await reader.get(tenantId, STREAMS, kind)) as unknown as StreamDocument | undefined)?.revision ?? -1;

export interface Retrying extends LedgerLog {
  readonly set: ReadModelSet;
  readonly folding: Folding;
  /** Tenants to retry whatever parked them. Undefined: only those that may have become readable. */
  readonly isRequested?: (tenantId: string) => boolean;
  /** Runs before each commit, so that the set may be projected further in between. */
  readonly between?: () => Promise<unknown>;
  readonly onParked?: (tenant: ParkedTenant) => void;
}

/** The events of one commit. */
const MAX_EVENTS = 512;

/** The next events of a parked tenant that the set has already passed, and whether there are no more of them. */
const readWaiting = async (
  { log }: LedgerLog,
  { tenant_id, after }: ParkedTenant,
  upTo: Position,
): Promise<{ readonly events: readonly LoggedEvent[]; readonly isRest: boolean }> => {
  const events: LoggedEvent[] = [];
  for await (const batch of log.readTenant(tenant_id, { after }))
    for (const event of batch) {
      if (event.position > upTo) return { events, isRest: true };
      if (events.length === MAX_EVENTS) return { events, isRest: false };
      events.push(event);
    }
  return { events, isRest: true };
};

/**
 * Applies the next waiting events of a tenant. It becomes free only if the set has not moved since they were read: it may
 * have passed another event of the tenant.
 */
const retryNext = async (retry: Retrying, tenantId: string): Promise<Retried> => {
  const { streams, set, folding, onParked = () => undefined } = retry;
  const before = await set.control();
  const tenant = await findParked(set, tenantId);
  if (tenant === undefined || before.next !== undefined) return 'free';
  const { events, isRest } = await readWaiting(retry, tenant, before.to?.position ?? '');
  const batch = tenantBatchOf(events, streams, tenant.after);
  let folded: Awaited<ReturnType<typeof foldWaiting>> | undefined;
  const outcome = await set.advance(async (now) => {
    folded = undefined;
    const [parked] = await set.load([parkedKey(tenantId)]);
    if (!isDeepStrictEqual(parked, { ...tenant })) return undefined;
    const isLast = isRest && now.to?.position === before.to?.position;
    if (!isLast && batch.length === 0) return undefined;
    folded = await foldWaiting(folding, documentCache(set), tenant, { batch, isRest: isLast });
    return { writes: folded.writes, parked: now.parked - Number(folded.retried === 'free') };
  });
  if (outcome === 'superseded') return 'free';
  if (outcome === 'overtaken' || folded === undefined) return 'more';
  if (folded.retried === 'again') folded.parked.forEach(onParked);
  return folded.retried;
};

/**
 * Retries the tenants that another version of the program parked and may have parked wrongly, those whose event has been
 * set aside, and those that are requested. Each continues where it was parked, in order.
 */
export const retryDue = async (retry: Retrying): Promise<void> => {
  const { set, folding, isRequested = () => false, between = async () => undefined } = retry;
  const { event, gapBefore } = folding.setAside;
  const isDue = ({ cause, tenant_id, event_id, program }: ParkedTenant): boolean =>
    isRequested(tenant_id) ||
    program !== folding.program ||
    (cause === 'missing_events' ? gapBefore : event)(tenant_id, event_id);
  if ((await set.control()).parked === 0) return;
  for await (const tenant of parkedTenants(set)) {
    if (!isDue(tenant)) continue;
    do await between();
    while ((await retryNext(retry, tenant.tenant_id)) === 'more');
  }
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
