import type { Collection } from 'mongodb';
import type { MongoConnection } from '../mongodb/connection';
import { gatheredUses, type KeyUse, type KeyUsesOptions } from './gathered-uses';
import type { KeyUses } from './key-uses';

interface StoredUse {
  /** `<tenant id>/<key id>`: a tenant's keys are a range of it. */
  readonly _id: string;
  readonly used_at: string;
}

const COLLECTION = 'key_uses';

/** Losing a few uses in a failover is harmless. */
const UNSAFE = { writeConcern: { w: 1, journal: false }, readConcern: { level: 'local' } } as const;

/** The character after the slash. */
const AFTER_SLASH = '0';

/** The latest use counts, not the latest writing. */
const write = (uses: Collection<StoredUse>, some: readonly KeyUse[]): Promise<unknown> =>
  uses.bulkWrite(
    some.map(({ tenantId, keyId, at }) => ({
      updateOne: {
        filter: { _id: `${tenantId}/${keyId}` },
        update: { $max: { used_at: at } },
        upsert: true,
      },
    })),
    { ordered: false },
  );

/** Last uses in MongoDB. */
export const mongoKeyUses = ({ db, run }: MongoConnection, options: KeyUsesOptions = {}): KeyUses => {
  const uses = db.collection<StoredUse>(COLLECTION, UNSAFE);
  return {
    ...gatheredUses((some) => write(uses, some), options),
    lastUses: async (tenantId, keyIds) => {
      const own =
        keyIds === undefined
          ? { $gte: `${tenantId}/`, $lt: `${tenantId}${AFTER_SLASH}` }
          : { $in: keyIds.map((keyId) => `${tenantId}/${keyId}`) };
      const found = await run(uses.find({ _id: own }).toArray());
      return new Map(found.map(({ _id, used_at }) => [_id.slice(tenantId.length + 1), used_at] as const));
    },
  };
};
