import { hash } from 'node:crypto';
import type { Idempotency, Recorded, TenantEvent } from '../domain/events';

/** Only this many of a tenant's idempotent requests are remembered, the newest. */
const MAX_REQUESTS = 10_000;

/** Idempotency keys are scoped to Application, method and path. */
export const requestKey = (
  applicationId: string,
  { scope, key }: Pick<Idempotency, 'scope' | 'key'>,
): string => `${applicationId} ${scope} ${key}`;

/**
 * The remembered requests of one tenant: a short digest of each, and where its events begin. Follows the stream event by
 * event, forward only. Digests may collide, so whoever finds a request compares it with the event itself.
 */
export interface RememberedRequests {
  /** The last revision included. */
  revision(): number;
  /** Takes the next event of the stream. Events already included are ignored. */
  take(event: Recorded<TenantEvent>): void;
  /** The revision at which the events of this request may begin. */
  find(key: string): number | undefined;
  /** Estimated memory use. */
  bytes(): number;
}

const DIGEST_BYTES = 6;
/** An entry of a map takes this much, with its two numbers. */
const ENTRY_BYTES = 64;

const digestOf = (key: string): number => Number.parseInt(hash('sha256', key).slice(0, 2 * DIGEST_BYTES), 16);

export const rememberedRequests = (): RememberedRequests => {
  const revisions = new Map<number, number>();
  /** One iterator for all, since each new one would skip everything that was deleted before. */
  const oldestFirst = revisions.keys();
  let revision = -1;
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
    revision: () => revision,
    take: ({ idempotency, actor, revision: taken }) => {
      if (taken <= revision) return;
      revision = taken;
      const key = idempotency === undefined || actor === undefined ? '' : requestKey(actor.id, idempotency);
      if (key !== '' && key !== lastKey) remember(digestOf(key), taken);
      lastKey = key;
    },
    find: (key) => revisions.get(digestOf(key)),
    bytes: () => revisions.size * ENTRY_BYTES,
  };
};
