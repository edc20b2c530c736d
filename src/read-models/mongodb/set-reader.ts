import type { ClientSession } from 'mongodb';
import {
  PROGRESS,
  PROGRESS_KEY,
  numberingOf,
  type Collection,
  type Document,
  type LineEnd,
  type LineReference,
  type Reader,
} from '../../../projections/projector';
import { beforeDeadline, monotonicMs } from '../../async/clock';
import { settleAll } from '../../async/concurrency';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import { inOrderOf, type DocumentKey, type Progress, type ReadModelSet } from '../read-models';
import {
  collectionName,
  controlsIn,
  documentOf,
  GATES,
  gatesIn,
  idOf,
  lineText,
  rootsIn,
  type Stored,
  type StoredControl,
} from './layout';
import { endsOf, findAt, findIn, parkedAfter, scanFrom, type MongoQuery } from './queries';

/** A set, and where it is stored. */
export interface OpenSet {
  readonly connection: MongoConnection;
  readonly id: string;
  readonly collections: ReadonlyMap<string, Collection>;
  /** Of what `advance` reads: never older than what this process has read or committed, whoever is primary. */
  readonly reading: ClientSession;
  /** By transactions of this process. */
  readonly usedGates: Set<Stored['_id']>;
  /** Nobody else writes to it. */
  isBuild: boolean;
  /** A commit of a build has failed. */
  isHalfWritten: boolean;
  /** It has all its indexes. */
  isFinished: boolean;
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
export const findControl = (connection: MongoConnection, id: string): Promise<StoredControl | null> => {
  const asked = controlsIn(connection).findOne({ _id: id }, { maxTimeMS: TIMES.queryMs });
  return within(connection, TIMES.queryMs, asked);
};

export const findRoot = async (connection: MongoConnection, version: string): Promise<string | undefined> => {
  const asked = rootsIn(connection).findOne({ _id: version }, { maxTimeMS: TIMES.queryMs });
  return (await within(connection, TIMES.queryMs, asked))?.live;
};

/** A query whose caller has given up must not go on at the server. */
const fetch = (
  set: OpenSet,
  collection: string,
  { filter, options }: MongoQuery,
  { maxTimeMS = TIMES.queryMs, session }: { maxTimeMS?: number; session?: ClientSession } = {},
) => {
  const { hint, ...others } = options;
  const asked = { ...others, maxTimeMS, batchSize: options.limit + 1, ...(session && { session }) };
  const found = documentsIn(set, collection).find(filter, set.isFinished ? { ...asked, hint } : asked);
  return within(set.connection, maxTimeMS, found.toArray());
};

export const textOfKey = ({ collection, tenantId, key }: DocumentKey): string =>
  JSON.stringify([collection, tenantId, key]);

const inAdvance = ({ reading }: OpenSet) => ({ maxTimeMS: TIMES.backgroundMs, session: reading });

/** One query for each collection. */
const load =
  (set: OpenSet): ReadModelSet['load'] =>
  async (keys) => {
    const found = new Map<string, Document>();
    const loadFrom = async (collection: string): Promise<void> => {
      const wanted = keys.filter((key) => key.collection === collection);
      const filter = { _id: { $in: wanted.map(({ tenantId, key }) => idOf(tenantId, key)) } };
      const options = { limit: wanted.length, hint: { _id: 1 } } as const;
      for (const row of await fetch(set, collection, { filter, options }, inAdvance(set)))
        found.set(textOfKey({ collection, tenantId: row._id.tenant, key: row._id.key }), documentOf(row));
    };
    await settleAll(Array.from(new Set(keys.map((key) => key.collection)), loadFrom));
    return keys.map((key) => found.get(textOfKey(key)));
  };

const find =
  (set: OpenSet): ReadModelSet['find'] =>
  async (tenantId, collection, query) => {
    const asked = findIn(declaredIn(set, collection), tenantId, query);
    return (await fetch(set, collection, asked)).map(documentOf);
  };

const documentsAt =
  (set: OpenSet): ReadModelSet['at'] =>
  async (tenantId, collection, line, numbers) => {
    const declared = declaredIn(set, collection);
    const { number } = numberingOf(declared, line);
    const found = await fetch(set, collection, findAt(declared, tenantId, line, numbers));
    const what = (): string => `${collection} of tenant ${tenantId} in ${set.connection.place}`;
    return inOrderOf(numbers, found.map(documentOf), number, what);
  };

/** One aggregation for each index. */
const lastOf =
  (set: OpenSet): ReadModelSet['lastOf'] =>
  async (lines) => {
    const found = new Map<string, LineEnd>();
    const indexOf = ({ collection, index }: LineReference): string => `${collection} ${index} `;
    const findEnds = async (index: string): Promise<void> => {
      const ofIndex = lines.filter((line) => indexOf(line) === index);
      const [{ collection, ...line } = { collection: '', index, equal: [] }] = ofIndex;
      const texts = ofIndex.map(({ tenantId, equal }) => lineText(tenantId, equal));
      const { pipeline, hint } = endsOf(declaredIn(set, collection), line, texts);
      const options = { hint, ...inAdvance(set) };
      const answer = documentsIn(set, collection).aggregate<LineEnd & { _id: string }>(pipeline, options);
      for (const { _id, ...end } of await within(set.connection, TIMES.backgroundMs, answer.toArray()))
        found.set(`${index}${_id}`, end);
    };
    for (const { collection, ...line } of lines) numberingOf(declaredIn(set, collection), line);
    await settleAll(Array.from(new Set(lines.map(indexOf)), findEnds));
    return lines.map((line) => {
      const { number = 0, value } = found.get(indexOf(line) + lineText(line.tenantId, line.equal)) ?? {};
      return { number, value };
    });
  };

export const progressIn =
  (set: OpenSet): ReadModelSet['progress'] =>
  async (tenantIds) => {
    const keys = tenantIds.map((tenantId) => ({ tenantId, collection: PROGRESS.name, key: PROGRESS_KEY }));
    return (await load(set)(keys)) as unknown as readonly (Progress | undefined)[];
  };

const furthest = async ({ connection, id }: OpenSet): ReturnType<ReadModelSet['furthest']> => {
  const options = { sort: { furthest: -1 }, limit: 1, maxTimeMS: TIMES.queryMs } as const;
  const asked = gatesIn(connection, id).find({ _id: { $in: [...GATES] } }, options);
  const [found] = await within(connection, TIMES.queryMs, asked.toArray());
  return found?.furthest;
};

type SetReader = Pick<ReadModelSet, keyof Reader | 'scan' | 'load' | 'progress' | 'parked' | 'furthest'>;

/** Reads with the connection's read concern `majority`, so that nothing that was read can be rolled back. */
export const setReader = (set: OpenSet): SetReader => ({
  get: async (tenantId, collection, key) => {
    const options = { limit: 1, hint: { _id: 1 } } as const;
    const [found] = await fetch(set, collection, { filter: { _id: idOf(tenantId, key) }, options });
    return found === undefined ? undefined : documentOf(found);
  },
  find: find(set),
  at: documentsAt(set),
  lastOf: lastOf(set),
  scan: async (collection, limit, after) => {
    const rows = await fetch(set, collection, scanFrom(limit, after), { maxTimeMS: TIMES.backgroundMs });
    const textOf = ({ doc, text = JSON.stringify(doc) }: Stored): string => text;
    return rows.map((row) => ({ tenantId: row._id.tenant, key: row._id.key, text: textOf(row) }));
  },
  load: load(set),
  progress: progressIn(set),
  parked: async (limit, afterTenant = '') => {
    const rows = await fetch(set, PROGRESS.name, parkedAfter(limit, afterTenant));
    return rows.flatMap(({ doc }) => (doc as unknown as Progress).parked ?? []);
  },
  furthest: () => furthest(set),
});
