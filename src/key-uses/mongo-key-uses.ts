import type { AnyBulkWriteOperation } from 'mongodb';
import { BACKGROUND_MS, beforeDeadline, monotonicMs } from '../async/clock';
import { fault } from '../fault';
import type { MongoConnection } from '../mongodb/connection';
import { batchedUses, type KeyUsesOptions } from './batched-uses';
import type { KeyDay, KeyUses } from './key-uses';

interface StoredUse {
  /** `<tenant id>/<key id>`: the keys of a tenant form a range. */
  readonly _id: string;
  readonly used_at: string;
}

interface StoredDay extends Omit<KeyDay, 'operations'> {
  /** `<date>/<tenant id>/<key id>`: the days before another one form a range. */
  readonly _id: string;
  /** Left out: none. */
  readonly operations?: KeyDay['operations'];
}

const USES = 'key_uses';
const DAYS = 'key_days';

/** Losing a few uses in a failover is harmless. */
const UNSAFE = { writeConcern: { w: 1, journal: false }, readConcern: { level: 'local' } } as const;

/** The character that follows the slash in ASCII. */
const AFTER_SLASH = '0';

/** Keeps the latest use, in whatever order they are written. */
const latestUse = ({ tenantId, keyId, lastAt }: KeyDay): AnyBulkWriteOperation<StoredUse> => ({
  updateOne: {
    filter: { _id: `${tenantId}/${keyId}` },
    update: { $max: { used_at: lastAt } },
    upsert: true,
  },
});

const idOf = ({ date, tenantId, keyId }: Pick<KeyDay, 'date' | 'tenantId' | 'keyId'>): string =>
  `${date}/${tenantId}/${keyId}`;

const addition = (day: KeyDay): AnyBulkWriteOperation<StoredDay> => {
  const { tenantId, applicationId, keyId, date, operations, failed, eventsGivenOut } = day;
  const counts = Object.entries(operations).map(([name, count]) => [`operations.${name}`, count] as const);
  return {
    updateOne: {
      filter: { _id: idOf(day) },
      update: {
        $setOnInsert: { tenantId, applicationId, keyId, date },
        $inc: { failed, eventsGivenOut, ...Object.fromEntries(counts) },
        $min: { firstAt: day.firstAt },
        $max: { lastAt: day.lastAt },
        ...(day.address === undefined ? {} : { $set: { address: day.address } }),
      },
      upsert: true,
    },
  };
};

const dayOf = ({ _id, operations = {}, ...day }: StoredDay): KeyDay => ({ ...day, operations });

/** For queries of requests, which have asked the read models before. */
const QUERY_MS = 900;

export const mongoKeyUses = ({ db, run, place }: MongoConnection, options: KeyUsesOptions = {}): KeyUses => {
  const uses = db.collection<StoredUse>(USES, UNSAFE);
  const days = db.collection<StoredDay>(DAYS, UNSAFE);
  /** When connections are cut, the driver may never answer. */
  const within = <T>(ms: number, work: Promise<T>): Promise<T> =>
    beforeDeadline(run(work), monotonicMs() + ms, () =>
      fault('read_models_unavailable', `MongoDB at ${place} did not answer within ${ms} ms.`),
    );
  const write = async (added: readonly KeyDay[]): Promise<void> => {
    await within(BACKGROUND_MS, uses.bulkWrite(added.map(latestUse), { ordered: false }));
    await within(BACKGROUND_MS, days.bulkWrite(added.map(addition), { ordered: false }));
  };
  return {
    ...batchedUses(write, options),
    lastUses: async (tenantId, keyIds) => {
      const ids =
        keyIds === undefined
          ? { $gte: `${tenantId}/`, $lt: `${tenantId}${AFTER_SLASH}` }
          : { $in: keyIds.map((keyId) => `${tenantId}/${keyId}`) };
      const stored = await within(QUERY_MS, uses.find({ _id: ids }).toArray());
      return new Map(stored.map(({ _id, used_at }) => [_id.slice(tenantId.length + 1), used_at] as const));
    },
    days: async (tenantId, keyId, dates) => {
      const ids = dates.map((date) => idOf({ date, tenantId, keyId }));
      return (await within(QUERY_MS, days.find({ _id: { $in: ids } }).toArray())).map(dayOf);
    },
    daysBefore: async (date, limit, after) => {
      const range = { $gt: after === undefined ? '' : idOf(after), $lt: date };
      const found = days.find({ _id: range }).sort({ _id: 1 }).limit(limit).toArray();
      return (await within(BACKGROUND_MS, found)).map(dayOf);
    },
    remove: async (removed) =>
      void (await within(BACKGROUND_MS, days.deleteMany({ _id: { $in: removed.map(idOf) } }))),
  };
};
