import type { Caused, Circumstances, Recorded, TenantEvent } from '../domain/events';
import { absent, type Tenant } from '../domain/tenant';
import { evolve } from '../domain/tenant-folding';
import { fault, messageOf } from '../fault';
import { decode } from '../event-log/codec';
import type { LoggedEvent, Position } from '../event-log/event-log';
import { gapBefore, type Streams } from '../event-log/streams';

/**
 * A tenant's stream, folded up to a revision. It is mutable, so whoever decides on it takes both members in one step and
 * keeps nothing of the tenant.
 */
export interface Fold {
  /** -1 while there is no stream. */
  revision: number;
  tenant: Tenant;
}

export const emptyFold = (): Fold => ({ revision: -1, tenant: absent });

/** A tenant whose stream cannot be read. Snake case: this is what `/readyz` and `status --json` show. */
export interface UnreadableTenant {
  readonly tenant_id: string;
  /** Null: no single event is at fault, because events were removed from the store. */
  readonly event_id: string | null;
  readonly position: Position | null;
  readonly reason: string;
}

type InLog = Partial<Pick<Circumstances, 'id' | 'position'>>;

/** No decision may be based on a stream that cannot be read in full: it may contain a revocation. */
export const unreadable = (tenantId: string, { id, position }: InLog, reason: string) =>
  fault('tenant_unreadable', `The history of tenant ${tenantId} cannot be read. ${reason}`, {
    tenant_id: tenantId,
    event_id: id ?? null,
    position: position ?? null,
    reason,
  } satisfies UnreadableTenant);

/** Decodes the next event of a tenant's stream. `tenant_unreadable` if it does not directly follow `after`. */
export const tenantEventOf = (
  logged: LoggedEvent,
  after: number,
  tenantId: string,
  streams: Streams,
): Recorded<TenantEvent> => {
  const gap = gapBefore(logged, after);
  if (gap !== undefined) throw unreadable(tenantId, logged, gap);
  const decoded = decode(logged, streams);
  if (decoded.status !== 'good' || decoded.kind !== 'tenant')
    throw unreadable(tenantId, logged, decoded.status === 'bad' ? decoded.reason : 'It is not ours.');
  return decoded.event;
};

/** Applies the next event, or throws `tenant_unreadable` if it is impossible in this state. */
export const foldEvent = (fold: Fold, event: Caused & InLog): void => {
  try {
    fold.tenant = evolve(fold.tenant, event);
    fold.revision = event.revision;
  } catch (error) {
    throw unreadable(event.tenantId, event, messageOf(error));
  }
};

const BASE_BYTES = 2_000;
const APPLICATION_BYTES = 2_000;
/** A revoked one takes half of it. */
const KEY_BYTES = 600;

/** Estimated memory use of a fold. */
export const bytesOf = ({ tenant }: Fold): number => {
  if (tenant.status === 'absent') return BASE_BYTES;
  return BASE_BYTES + tenant.applications.size * APPLICATION_BYTES + tenant.keys.size * KEY_BYTES;
};
