import type { Recorded, TenantEvent } from '../domain/events';
import { absent, type Tenant } from '../domain/tenant';
import { foldingFrom } from '../domain/tenant-folding';
import { fault, messageOf } from '../fault';
import { decode } from '../event-log/codec';
import type { LoggedEvent, Position } from '../event-log/event-log';
import { gapBefore } from '../event-log/gap';
import type { Streams } from '../event-log/streams';

/** A tenant's stream, folded up to a revision. */
export interface Fold {
  /** -1 while there is no stream. */
  readonly revision: number;
  readonly eventId: string;
  readonly tenant: Tenant;
}

/** Raise it whenever the same events would fold to something else: older snapshots are then left aside. */
export const FOLD_VERSION = 3;

export const emptyFold: Fold = { revision: -1, eventId: '', tenant: absent };

/** A tenant whose stream cannot be read. Snake case: this is what `/readyz` and `status --json` show. */
export interface UnreadableTenant {
  readonly tenant_id: string;
  /** Null: it is not one event, but all that was removed from the store. */
  readonly event_id: string | null;
  readonly position: Position | null;
  readonly reason: string;
}

type Unread = Pick<LoggedEvent, 'id' | 'position'>;

/** A stream that cannot be read must not be decided on: it may hold a revocation. */
export const unreadable = (tenantId: string, event: Unread | undefined, reason: string) =>
  fault('tenant_unreadable', `The history of tenant ${tenantId} cannot be read. ${reason}`, {
    tenant_id: tenantId,
    event_id: event?.id ?? null,
    position: event?.position ?? null,
    reason,
  } satisfies UnreadableTenant);

/** The next event of a tenant's stream, which must follow a revision without a gap: else `tenant_unreadable`. */
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

/** A fold that goes on, event by event. */
export interface FoldingStream {
  revision(): number;
  /** The next one. One that cannot follow is `tenant_unreadable`. */
  take(event: Recorded<TenantEvent>): void;
  fold(): Fold;
}

export const foldingStream = (start: Fold, tenantId: string): FoldingStream => {
  const folding = foldingFrom(start.tenant);
  let { revision, eventId } = start;
  return {
    revision: () => revision,
    take: (event) => {
      try {
        folding.take(event);
      } catch (error) {
        throw unreadable(tenantId, event, messageOf(error));
      }
      ({ revision, id: eventId } = event);
    },
    fold: () => ({ revision, eventId, tenant: folding.tenant() }),
  };
};

const BASE_BYTES = 2_000;
const APPLICATION_BYTES = 2_000;
const KEY_BYTES = 600;

/** Roughly what a fold takes in memory. */
export const bytesOf = ({ tenant }: Fold): number =>
  tenant.status === 'absent'
    ? BASE_BYTES
    : BASE_BYTES + tenant.applications.size * APPLICATION_BYTES + tenant.keys.size * KEY_BYTES;
