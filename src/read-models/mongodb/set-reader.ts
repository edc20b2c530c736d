import type { Collection, Document, Reader } from '../../../projections/projector';
import { beforeDeadline, monotonicMs } from '../../async/clock';
import { settleAll } from '../../async/concurrency';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import { allThere, type DocumentKey, type ReadModelSet } from '../read-models';
import { collectionName, controlsIn, documentOf, idOf, rootsIn } from './layout';
import type { Stored, StoredControl } from './layout';
import { findIn, lastBefore, scanFrom, type MongoQuery } from './queries';

/** A set, and where it is stored. */
export interface OpenSet {
  readonly connection: MongoConnection;
  readonly id: string;
  readonly collections: ReadonlyMap<string, Collection>;
  /** While it is being built, it has no secondary indexes, and nobody else reads or writes it. */
  isBuild: boolean;
}

export const declaredIn = ({ collections }: OpenSet, name: string): Collection => {
  const found = collections.get(name);
  if (found === undefined) throw new Error(`There is no collection ${name}.`);
  return found;
};

export const documentsIn = (set: OpenSet, collection: string) =>
  set.connection.db.collection<Stored>(collectionName(set.id, declaredIn(set, collection).name));

/** When connections are cut, the driver has been seen to leave a query without an answer for good. */
const within = <T>({ run, place }: MongoConnection, ms: number, answer: Promise<T>): Promise<T> => {
  const late = () => fault('read_models_unavailable', `MongoDB at ${place} did not answer within ${ms} ms.`);
  return run(beforeDeadline(answer, monotonicMs() + ms, late));
};

/** Null: there is none. */
export const findControl = (connection: MongoConnection, id: string): Promise<StoredControl | null> =>
  within(
    connection,
    TIMES.queryMs,
    controlsIn(connection).findOne({ _id: id }, { maxTimeMS: TIMES.queryMs }),
  );

export const findRoot = async (connection: MongoConnection, version: string): Promise<string | undefined> => {
  const asked = rootsIn(connection).findOne({ _id: version }, { maxTimeMS: TIMES.queryMs });
  return (await within(connection, TIMES.queryMs, asked))?.live;
};

/** A query whose caller has given up must not go on at the server. */
const fetch = (set: OpenSet, collection: string, { filter, options }: MongoQuery, maxTimeMS: number) => {
  const { hint, ...others } = { ...options, maxTimeMS, batchSize: options.limit + 1 };
  const found = documentsIn(set, collection).find(filter, set.isBuild ? others : { ...others, hint });
  return within(set.connection, maxTimeMS, found.toArray());
};

export const textOfKey = ({ collection, tenantId, key }: DocumentKey): string =>
  JSON.stringify([collection, tenantId, key]);

/** One query for each collection. */
const load =
  (set: OpenSet): ReadModelSet['load'] =>
  async (keys) => {
    const found = new Map<string, Document>();
    const loadFrom = async (collection: string): Promise<void> => {
      const wanted = keys.filter((key) => key.collection === collection);
      const filter = { _id: { $in: wanted.map(({ tenantId, key }) => idOf(tenantId, key)) } };
      const options = { limit: wanted.length, hint: { _id: 1 } } as const;
      for (const row of await fetch(set, collection, { filter, options }, TIMES.backgroundMs))
        found.set(textOfKey({ collection, tenantId: row._id.tenant, key: row._id.key }), documentOf(row));
    };
    await settleAll(Array.from(new Set(keys.map((key) => key.collection)), loadFrom));
    return keys.map((key) => found.get(textOfKey(key)));
  };

const find =
  (set: OpenSet): ReadModelSet['find'] =>
  async (tenantId, collection, query) => {
    const asked = findIn(declaredIn(set, collection), tenantId, query);
    const rows = await fetch(set, collection, asked, TIMES.queryMs);
    const what = (): string => `${collection} of tenant ${tenantId} in ${set.connection.place}`;
    return allThere(rows, query, what).map(documentOf);
  };

const countsBefore =
  (set: OpenSet): ReadModelSet['countsBefore'] =>
  (tenantId, collection, line, values) =>
    settleAll(
      values.map(async (value) => {
        const { number, query } = lastBefore(declaredIn(set, collection), tenantId, line, value);
        const [last] = await fetch(set, collection, query, TIMES.queryMs);
        return last === undefined ? 0 : Number(last.doc[number]);
      }),
    );

/** Reads with the connection's read concern `majority`, so that nothing that was read can be rolled back. */
export const setReader = (set: OpenSet): Pick<ReadModelSet, keyof Reader | 'scan' | 'load'> => ({
  get: async (tenantId, collection, key) => {
    const options = { limit: 1, hint: { _id: 1 } } as const;
    const query = { filter: { _id: idOf(tenantId, key) }, options };
    const [found] = await fetch(set, collection, query, TIMES.queryMs);
    return found === undefined ? undefined : documentOf(found);
  },
  find: find(set),
  countsBefore: countsBefore(set),
  scan: async (collection, limit, after) => {
    const rows = await fetch(set, collection, scanFrom(limit, after), TIMES.backgroundMs);
    const textOf = ({ doc, text = JSON.stringify(doc) }: Stored): string => text;
    return rows.map((row) => ({ tenantId: row._id.tenant, key: row._id.key, text: textOf(row) }));
  },
  load: load(set),
});
