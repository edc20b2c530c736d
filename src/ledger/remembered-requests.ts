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
  /** The revisions at which the events of this request may begin, oldest first. */
  find(key: string): readonly number[];
  /** For a snapshot. */
  packed(): PackedRequests;
  /** Estimated memory use. */
  bytes(): number;
}

export interface PackedRequests {
  /** The `requestKey` of the last event, or empty. The events of one request are adjacent in the stream. */
  readonly lastKey: string;
  /** Digests and revisions in base64, oldest first. */
  readonly requests: string;
}

const DIGEST_BYTES = 6;
const ENTRY_BYTES = DIGEST_BYTES + 4;
const MIN_CAPACITY = 16;

const digestOf = (key: string): number => Number.parseInt(hash('sha256', key).slice(0, 2 * DIGEST_BYTES), 16);

/** Digests and revisions, oldest first. Once full, the oldest is replaced. */
const requestRing = () => {
  let digests = new Float64Array(MIN_CAPACITY);
  let revisions = new Uint32Array(MIN_CAPACITY);
  let count = 0;
  /** The place of the oldest. */
  let start = 0;

  const grow = (): void => {
    const capacity = Math.min(2 * count, MAX_REQUESTS);
    const [oldDigests, oldRevisions] = [digests, revisions];
    digests = new Float64Array(capacity);
    digests.set(oldDigests);
    revisions = new Uint32Array(capacity);
    revisions.set(oldRevisions);
  };

  return {
    push: (digest: number, revision: number): void => {
      if (count === digests.length && count < MAX_REQUESTS) grow();
      const place = (start + count) % digests.length;
      if (count === digests.length) start = (start + 1) % count;
      else count += 1;
      digests[place] = digest;
      revisions[place] = revision;
    },
    revisionsOf: (digest: number): readonly number[] => {
      const found: number[] = [];
      for (let at = digests.indexOf(digest); at >= 0 && at < count; at = digests.indexOf(digest, at + 1))
        found.push(revisions[at] as number);
      return found.toSorted((a, b) => a - b);
    },
    packed: (): string => {
      const bytes = Buffer.allocUnsafe(count * ENTRY_BYTES);
      for (let i = 0; i < count; i += 1) {
        const place = (start + i) % digests.length;
        bytes.writeUIntBE(digests[place] as number, i * ENTRY_BYTES, DIGEST_BYTES);
        bytes.writeUInt32BE(revisions[place] as number, i * ENTRY_BYTES + DIGEST_BYTES);
      }
      return bytes.toString('base64');
    },
    bytes: () => digests.byteLength + revisions.byteLength,
  };
};

/** `from` is up to this revision. */
export const rememberedRequests = (from?: PackedRequests, upTo = -1): RememberedRequests => {
  const ring = requestRing();
  const bytes = Buffer.from(from?.requests ?? '', 'base64');
  for (let at = 0; at + ENTRY_BYTES <= bytes.length; at += ENTRY_BYTES)
    ring.push(bytes.readUIntBE(at, DIGEST_BYTES), bytes.readUInt32BE(at + DIGEST_BYTES));
  let revision = upTo;
  let lastKey = from?.lastKey ?? '';

  return {
    revision: () => revision,
    take: ({ idempotency, actor, revision: taken }) => {
      if (taken <= revision) return;
      revision = taken;
      const key = idempotency === undefined || actor === undefined ? '' : requestKey(actor.id, idempotency);
      if (key !== '' && key !== lastKey) ring.push(digestOf(key), taken);
      lastKey = key;
    },
    find: (key) => ring.revisionsOf(digestOf(key)),
    packed: () => ({ lastKey, requests: ring.packed() }),
    bytes: ring.bytes,
  };
};
