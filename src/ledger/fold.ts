import { hash } from 'node:crypto';
import type { Caused, Circumstances, Idempotency, Recorded, TenantEvent } from '../domain/events';
import { absent, evolve, type Tenant } from '../domain/tenant';
import { decode } from '../event-log/codec';
import type { LoggedEvent, Position } from '../event-log/event-log';
import { gapBefore, type LedgerLog, type Streams } from '../event-log/streams';
import { fault, messageOf } from '../fault';

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
export const tenantEventOf = (logged: LoggedEvent, after: number, tenantId: string, streams: Streams) => {
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

/** Only this many of a tenant's idempotent requests are remembered, the newest. */
const MAX_REQUESTS = 10_000;

type RequestId = Pick<Idempotency, 'scope' | 'key'>;

/** Idempotency keys are scoped to Application, method and path. */
export const requestKey = (applicationId: string, { scope, key }: RequestId): string =>
  `${applicationId} ${scope} ${key}`;

const DIGEST_BYTES = 6;
/** An entry of a map takes this much, with its two numbers. */
const ENTRY_BYTES = 64;

const digestOf = (key: string): number => Number.parseInt(hash('sha256', key).slice(0, 2 * DIGEST_BYTES), 16);

/**
 * The remembered requests of one tenant: a short digest of each, and where its events begin. Digests may collide, so
 * whoever finds a request compares it with the events themselves.
 */
export const rememberedRequests = () => {
  const revisions = new Map<number, number>();
  /** One iterator for all, since each new one would skip everything that was deleted before. */
  const oldestFirst = revisions.keys();
  /** The key of the last event, or empty. The events of one request are adjacent in the stream. */
  let lastKey = '';

  const remember = (digest: number, at: number): void => {
    revisions.delete(digest);
    revisions.set(digest, at);
    if (revisions.size <= MAX_REQUESTS) return;
    const { value: oldest } = oldestFirst.next();
    if (oldest !== undefined) revisions.delete(oldest);
  };

  return {
    /** Takes the next event of the stream. */
    take: ({ idempotency, actor, revision }: Caused): void => {
      const key = idempotency === undefined || actor === undefined ? '' : requestKey(actor.id, idempotency);
      if (key !== '' && key !== lastKey) remember(digestOf(key), revision);
      lastKey = key;
    },
    /** The revision at which the events of this request may begin. */
    find: (applicationId: string, request: RequestId | undefined): number | undefined =>
      request === undefined ? undefined : revisions.get(digestOf(requestKey(applicationId, request))),
    /** Estimated memory use. */
    bytes: (): number => revisions.size * ENTRY_BYTES,
  };
};

/** A request that was answered before. */
export interface EarlierRequest {
  readonly hash: string;
  /** The API key of the request. */
  readonly keyId?: string | undefined;
  /** The revision of the first event that the request caused. */
  readonly revision: number;
  /** The events that it caused, from which the response is made again. */
  readonly events: readonly Recorded<TenantEvent>[];
}

export interface RepeatableRequest {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly request: RequestId | undefined;
}

/** The same request, if its events do begin at the remembered revision. They are adjacent in the stream. */
export const earlierRequest = async (
  { log, streams }: LedgerLog,
  { tenantId, applicationId, request }: RepeatableRequest,
  revision: number,
): Promise<EarlierRequest | undefined> => {
  const events: Recorded<TenantEvent>[] = [];
  const found = (): EarlierRequest | undefined => {
    const [first] = events;
    if (first?.idempotency === undefined) return undefined;
    return { hash: first.idempotency.hash, keyId: first.keyId, revision, events };
  };
  for await (const batch of log.readStream(streams.tenant(tenantId), revision - 1))
    for (const logged of batch) {
      const event = tenantEventOf(logged, revision + events.length - 1, tenantId, streams);
      const { actor, idempotency } = event;
      const { key, scope } = idempotency ?? {};
      if (actor?.id !== applicationId || key !== request?.key || scope !== request?.scope) return found();
      events.push(event);
    }
  return found();
};
