import type { ApplicationType } from './permissions';

export interface Stamp {
  readonly at: string;
  readonly by?: string;
}

/** What stays of a revoked key: enough to refuse it, to say whose it was, and to use no id twice. */
export interface RevokedKey {
  readonly id: string;
  readonly applicationId: string;
  readonly revoked: true;
}

/** It may have expired, or have lost its Application. */
export interface UnrevokedKey {
  readonly id: string;
  readonly applicationId: string;
  readonly revoked: false;
  readonly expiresAt?: string;
  readonly name?: string;
  readonly created: Stamp;
}

export type Key = UnrevokedKey | RevokedKey;

/** The Application that holds a key. */
export interface KeyHolder {
  readonly id: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
}

/**
 * All keys of a tenant by digest, including revoked and expired ones. They are kept in buckets: adding or changing a key
 * copies only its bucket, so a write costs nearly the same at 100 keys and at 100,000.
 */
export interface Keys {
  readonly size: number;
  /** How many of them are revoked. */
  readonly revoked: number;
  readonly buckets: readonly (ReadonlyMap<string, Key> | undefined)[];
}

/** Of the hex digest. */
const BUCKET_CHARACTERS = 2;

const bucketOf = (digest: string): number => Number.parseInt(digest.slice(0, BUCKET_CHARACTERS), 16);

export const noKeys: Keys = { size: 0, revoked: 0, buckets: [] };

export const keyBy = ({ buckets }: Keys, digest: string): Key | undefined =>
  buckets[bucketOf(digest)]?.get(digest);

export const allKeys = function* ({ buckets }: Keys): Generator<[digest: string, key: Key]> {
  for (const bucket of buckets) if (bucket !== undefined) yield* bucket;
};

/** Without a generator, which would take several times as long. */
export const findKey = ({ buckets }: Keys, isWanted: (key: Key) => boolean): Key | undefined => {
  for (const bucket of buckets) {
    if (bucket === undefined) continue;
    for (const key of bucket.values()) if (isWanted(key)) return key;
  }
  return undefined;
};

/** Copy-on-write: each bucket is copied at its first change only. */
export interface ChangingKeys {
  get(digest: string): Key | undefined;
  set(digest: string, key: Key): void;
  /** The result is immutable: the next change copies again. */
  keys(): Keys;
}

export const changingKeys = (start: Keys): ChangingKeys => {
  let { size, revoked } = start;
  let buckets: (ReadonlyMap<string, Key> | undefined)[] | undefined;
  const own = new Map<number, Map<string, Key>>();
  let base = start;

  const ownBucket = (at: number): Map<string, Key> => {
    const copied = own.get(at);
    if (copied !== undefined) return copied;
    buckets ??= [...base.buckets];
    while (buckets.length <= at) buckets.push(undefined);
    const bucket = new Map(buckets[at]);
    buckets[at] = bucket;
    own.set(at, bucket);
    return bucket;
  };

  return {
    get: (digest) => (buckets ?? base.buckets)[bucketOf(digest)]?.get(digest),
    set: (digest, key) => {
      const bucket = ownBucket(bucketOf(digest));
      const before = bucket.get(digest);
      if (before === undefined) size += 1;
      if (key.revoked && before?.revoked !== true) revoked += 1;
      bucket.set(digest, key);
    },
    keys: () => {
      if (buckets === undefined) return base;
      base = { size, revoked, buckets };
      buckets = undefined;
      own.clear();
      return base;
    },
  };
};
