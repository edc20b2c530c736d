import type { Collection } from 'mongodb';
import type { MongoConnection } from '../mongodb/connection';
import { gatheredUses, type KeyUse, type KeyUsesOptions } from './gathered-uses';
import type { KeyUses } from './key-uses';

interface StoredUse {
  /** `<tenant id>/<key id>`: the keys of a tenant form a range. */
  readonly _id: string;
  readonly used_at: string;
}

const COLLECTION = 'key_uses';

/** Losing a few uses in a failover is harmless. */
const UNSAFE = { writeConcern: { w: 1, journal: false }, readConcern: { level: 'local' } } as const;

/** The character that follows the slash in ASCII. */
const AFTER_SLASH = '0';

/** Keeps the latest use, in whatever order they are written. */
const write = (collection: Collection<StoredUse>, uses: readonly KeyUse[]): Promise<unknown> =>
  collection.bulkWrite(
    uses.map(({ tenantId, keyId, at }) => ({
      updateOne: {
        filter: { _id: `${tenantId}/${keyId}` },
        update: { $max: { used_at: at } },
        upsert: true,
      },
    })),
    { ordered: false },
  );

export const mongoKeyUses = ({ db, run }: MongoConnection, options: KeyUsesOptions = {}): KeyUses => {
  const collection = db.collection<StoredUse>(COLLECTION, UNSAFE);
  return {
    ...gatheredUses((uses) => write(collection, uses), options),
    lastUses: async (tenantId, keyIds) => {
      const ids =
        keyIds === undefined
          ? { $gte: `${tenantId}/`, $lt: `${tenantId}${AFTER_SLASH}` }
          : { $in: keyIds.map((keyId) => `${tenantId}/${keyId}`) };
      const stored = await run(collection.find({ _id: ids }).toArray());
      return new Map(stored.map(({ _id, used_at }) => [_id.slice(tenantId.length + 1), used_at] as const));
    },
  };
};
