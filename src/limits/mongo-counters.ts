import type { Collection, Db } from 'mongodb';
import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import { limiterOptions, type Policy } from './policies';

/** Loaded on demand: threads and commands do not count requests. */
const library = (): typeof import('rate-limiter-flexible') =>
  require('rate-limiter-flexible') as typeof import('rate-limiter-flexible');

interface Counter {
  readonly key: string;
  readonly points: number;
  readonly expire: Date;
}

const COLLECTION = 'rate_counters';

/** Expired counters are kept for a while, since the clocks of instances differ. */
const KEPT_MS = 60_000;
const SWEEP_BATCH = 1_000;

/** Counts may be lost in a failover, so writes wait neither for the disk nor for other servers. */
const UNSAFE = { writeConcern: { w: 1, journal: false } } as const;
/** A sweep must see its own deletions. */
const LOCAL = { readConcern: { level: 'local' } } as const;

/** For servers without TTL indexes. Deletes at most one batch per command. */
const sweep = async (counters: Collection<Counter>): Promise<void> => {
  for (;;) {
    const expired = { expire: { $lt: new Date(Date.now() - KEPT_MS) } };
    const batch = await counters.find(expired, { projection: { _id: 1 }, limit: SWEEP_BATCH }).toArray();
    if (batch.length > 0)
      await counters.deleteMany({ _id: { $in: batch.map(({ _id }) => _id) }, ...expired });
    if (batch.length < SWEEP_BATCH) return;
  }
};

/** The unique index comes first: without it, a key could get two counters. False: the server has no TTL indexes. */
const createIndexes = async (counters: Collection<Counter>): Promise<boolean> => {
  await counters.createIndex({ key: 1 }, { unique: true });
  try {
    await counters.createIndex({ expire: 1 }, { expireAfterSeconds: KEPT_MS / 1_000 });
    return true;
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'MongoServerError') throw error;
    await counters.createIndex({ expire: 1 });
    return false;
  }
};

/** Counters in MongoDB, shared by all instances. Windows and blocks end by the clock of the instance that counts. */
export const mongoCounters = async ({ client, databaseName }: Db, sweepEveryMs = KEPT_MS / 2) => {
  const db = client.db(databaseName, UNSAFE);
  const counters = db.collection<Counter>(COLLECTION, LOCAL);
  const hasTtlIndex = await createIndexes(counters);
  const timer = hasTtlIndex
    ? undefined
    : setInterval(() => void sweep(counters).catch(() => undefined), sweepEveryMs).unref();
  const { RateLimiterMongo } = library();
  return {
    limiterOf: (policy: Policy): RateLimiterAbstract =>
      new RateLimiterMongo({
        ...limiterOptions(policy),
        storeClient: db,
        tableName: COLLECTION,
        disableIndexesCreation: true,
        // One more than what starts a block, so that the store reports how long it still lasts.
        inMemoryBlockOnConsumed: policy.limit + 2,
      }),
    close: async (): Promise<void> => clearInterval(timer),
  };
};

export type SharedCounters = Awaited<ReturnType<typeof mongoCounters>>;
