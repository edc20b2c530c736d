import type { Recorded, TenantEvent } from '../domain/events';
import { absent, type Tenant } from '../domain/tenant';
import { foldingFrom } from '../domain/tenant-folding';
import { fault, messageOf } from '../fault';
import { decode } from '../event-log/codec';
import type { LoggedEvent, Position } from '../event-log/event-log';
import { gapBefore } from '../event-log/gap';
import type { Streams } from '../event-log/streams';
import type { RememberedRequests } from './remembered-requests';

/** A tenant's stream, folded up to a revision. */
export interface Fold {
  /** -1 while there is no stream. */
  readonly revision: number;
  readonly tenant: Tenant;
}

/** What decisions about a tenant are based on. */
export interface KnownTenant {
  /** It is immutable. */
  readonly fold: Fold;
  /** They advance on their own, so they may be ahead of the fold. */
  readonly requests: RememberedRequests;
}

export const emptyFold: Fold = { revision: -1, tenant: absent };

/** A tenant whose stream cannot be read. Snake case: this is what `/readyz` and `status --json` show. */
export interface UnreadableTenant {
  readonly tenant_id: string;
  /** Null: no single event is at fault, because events were removed from the store. */
  readonly event_id: string | null;
  readonly position: Position | null;
  readonly reason: string;
}

type BadEvent = Pick<LoggedEvent, 'id' | 'position'>;

/** No decision may be based on a stream that cannot be read in full: it may contain a revocation. */
export const unreadable = (tenantId: string, event: BadEvent | undefined, reason: string) =>
  fault('tenant_unreadable', `The history of tenant ${tenantId} cannot be read. ${reason}`, {
    tenant_id: tenantId,
    event_id: event?.id ?? null,
    position: event?.position ?? null,
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

export interface FoldingStream {
  revision(): number;
  /** Applies the next event, or throws `tenant_unreadable` if it is impossible in this state. */
  take(event: Recorded<TenantEvent>): void;
  fold(): Fold;
}

export const foldingStream = (start: Fold, tenantId: string): FoldingStream => {
  const folding = foldingFrom(start.tenant);
  let { revision } = start;
  return {
    revision: () => revision,
    take: (event) => {
      try {
        folding.take(event);
      } catch (error) {
        throw unreadable(tenantId, event, messageOf(error));
      }
      ({ revision } = event);
    },
    fold: () => ({ revision, tenant: folding.tenant() }),
  };
};

const BASE_BYTES = 2_000;
const APPLICATION_BYTES = 2_000;
const KEY_BYTES = 600;
const REVOKED_KEY_BYTES = 300;

/** Estimated memory use of a fold. */
export const bytesOf = ({ tenant }: Fold): number => {
  if (tenant.status === 'absent') return BASE_BYTES;
  const { applications, keys } = tenant;
  return (
    BASE_BYTES +
    applications.size * APPLICATION_BYTES +
    (keys.size - keys.revoked) * KEY_BYTES +
    keys.revoked * REVOKED_KEY_BYTES
  );
};
