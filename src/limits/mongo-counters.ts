import type { Collection, Db } from 'mongodb';
import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import { limiterOptions, type Policy } from './policies';

/** Loaded only by those who count: threads and commands do not. */
const library = (): typeof import('rate-limiter-flexible') =>
  require('rate-limiter-flexible') as typeof import('rate-limiter-flexible');

/** Counters in MongoDB, for all instances together. Windows and blocks end by the clock of the instance that asks. */
export interface SharedCounters {
  limiterOf(policy: Policy): RateLimiterAbstract;
  close(): Promise<void>;
}

interface Counter {
  readonly key: string;
  readonly points: number;
  readonly expire: Date;
}

const COLLECTION = 'rate_counters';

/** Counters that are over stay for a while: clocks of instances differ. */
const KEPT_MS = 60_000;
const SWEEP_EVERY_MS = 30_000;
const SWEPT_AT_ONCE = 1_000;

/** Counts may be lost in a failover: nobody waits for a disk or for other servers. */
const UNSAFE = { writeConcern: { w: 1, journal: false } } as const;
/** What is swept reads what it has removed itself. */
const LOCAL = { readConcern: { level: 'local' } } as const;

/** For servers that remove nothing by themselves. Never more than one page in one command. */
const sweep = async (counters: Collection<Counter>): Promise<void> => {
  for (;;) {
    const over = { expire: { $lt: new Date(Date.now() - KEPT_MS) } };
    const found = await counters.find(over, { projection: { _id: 1 }, limit: SWEPT_AT_ONCE }).toArray();
    if (found.length > 0) await counters.deleteMany({ _id: { $in: found.map(({ _id }) => _id) }, ...over });
    if (found.length < SWEPT_AT_ONCE) return;
  }
};

/** The unique one first: without it the library would count in two places. False: the server has no TTL indexes. */
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

export const mongoCounters = async (
  { client, databaseName }: Db,
  sweepEveryMs = SWEEP_EVERY_MS,
): Promise<SharedCounters> => {
  const db = client.db(databaseName, UNSAFE);
  const counters = db.collection<Counter>(COLLECTION, LOCAL);
  const expires = await createIndexes(counters);
  const timer = expires
    ? undefined
    : setInterval(() => void sweep(counters).catch(() => undefined), sweepEveryMs).unref();
  const { RateLimiterMongo } = library();
  return {
    limiterOf: (policy) =>
      new RateLimiterMongo({
        ...limiterOptions(policy),
        storeClient: db,
        tableName: COLLECTION,
        disableIndexesCreation: true,
        // One more than what begins a block: then the store says how long it still lasts.
        inMemoryBlockOnConsumed: policy.limit + 2,
      }),
    close: async () => clearInterval(timer),
  };
};
