import type { Filter, FindOptions } from 'mongodb';
import type { Collection, Document } from '../../../projections/projector';
import { beforeDeadline, monotonicMs, pause } from '../../async/clock';
import { codeOf, fault, messageOf } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { settleAll } from '../../async/settle-all';
import { lost } from '../damage';
import { PARKED, type DocumentKey, type GenerationId, type Reader, type ScanStart } from '../read-models';
import {
  collectionName,
  documentOf,
  FIRST,
  idOf,
  idsOf,
  partsOf,
  type Stored,
  type StoredControl,
} from './layout';
import { findIn, lastBefore } from './queries';

/** The timeout of a query. */
const QUERY_MS = 900;

/** The timeout of a query for many documents, to project or to compare. The driver's is as long. */
const BULK_MS = 10_000;

/** Per command, which is limited to 16 MB. */
const MAX_IDS = 10_000;

/** A generation that exists, and where it is stored. */
export interface OpenGeneration {
  readonly connection: MongoConnection;
  readonly id: GenerationId;
  /** In the order of declaration. */
  readonly collections: readonly Collection[];
  /** When collections were last found whole, on the monotonic clock. */
  readonly wholeAt: Map<string, number>;
  /** Marks the generation if the work fails because contents are lost. */
  readonly guarded: <T>(work: Promise<T>) => Promise<T>;
  /** Without the writes of its last commit. Concurrent calls, also for other generations, share one query. */
  readonly control: () => Promise<StoredControl>;
  /** Why there is no control document: it was removed with the generation, or lost. */
  readonly withoutControl: () => Promise<Error>;
}

export const documentsIn = ({ connection, id }: OpenGeneration, collection: string) =>
  connection.db.collection<Stored>(collectionName(id, collection));

const declaredIn = ({ collections }: OpenGeneration, name: string): Collection => {
  const found = collections.find((collection) => collection.name === name);
  if (found === undefined) throw new Error(`There is no collection ${name}.`);
  return found;
};

interface Question {
  readonly filter: Filter<Stored>;
  readonly options: FindOptions;
}

/** A query whose caller has given up must not go on at the server. */
const fetch = (
  opened: OpenGeneration,
  collection: string,
  { filter, options }: Question,
  maxTimeMS: number,
) =>
  documentsIn(opened, collection)
    .find(filter, { ...options, maxTimeMS })
    .toArray();

/**
 * For many documents, to project or to compare. Has a deadline of its own: when connections are cut, the driver has been
 * seen to leave a query without an answer for good.
 */
const fetchMany = (opened: OpenGeneration, collection: string, question: Question) => {
  const late = () =>
    fault('read_models_unavailable', `MongoDB at ${opened.connection.place} did not answer in time.`);
  return beforeDeadline(fetch(opened, collection, question, BULK_MS), monotonicMs() + 1.5 * BULK_MS, late);
};

/** How long a collection that was found whole is not checked again for a projector, which misses documents all the time. */
const WHOLE_MS = 1_000;

/** Called when a document is not found: throws `contents_lost` if the collection was dropped. */
export const assertNotDropped = async (opened: OpenGeneration, collection: string): Promise<void> => {
  const first = await documentsIn(opened, collection).findOne({ _id: FIRST._id });
  if (first === null) throw lost(`the collection ${collection} was dropped.`);
};

/** The same, but not again for a while. */
const assertNotDroppedRecently = async (opened: OpenGeneration, collection: string): Promise<void> => {
  const { wholeAt } = opened;
  if (monotonicMs() - (wholeAt.get(collection) ?? -Infinity) < WHOLE_MS) return;
  await assertNotDropped(opened, collection);
  wholeAt.set(collection, monotonicMs());
};

/** The stored documents of some keys, including tombstones. */
export const loadStored = async (
  opened: OpenGeneration,
  keys: readonly DocumentKey[],
): Promise<readonly (Stored | undefined)[]> => {
  const wanted = new Map<string, Set<string>>();
  const ids = keys.map(({ tenantId, collection, key }) => {
    const id = idOf(tenantId, key);
    const collectionIds = wanted.get(declaredIn(opened, collection).name) ?? new Set<string>();
    wanted.set(collection, collectionIds.add(id));
    return id;
  });
  const found = new Map<string, Map<string, Stored>>();
  const load = async (collection: string, all: readonly string[]): Promise<void> => {
    const rows = new Map<string, Stored>();
    found.set(collection, rows);
    for (let at = 0; at < all.length; at += MAX_IDS) {
      const chunk = all.slice(at, at + MAX_IDS);
      const question = { filter: { _id: { $in: chunk } }, options: { batchSize: chunk.length + 1 } };
      for (const row of await fetchMany(opened, collection, question)) rows.set(row._id, row);
    }
    if (rows.size < all.length) await assertNotDroppedRecently(opened, collection);
  };
  await settleAll([...wanted].map(([collection, wantedIds]) => load(collection, [...wantedIds])));
  return keys.map(({ collection }, i) => found.get(collection)?.get(ids[i] as string));
};

const idsAfter = ({ tenantId, key }: ScanStart) =>
  key === undefined ? { $gte: idsOf(tenantId)[0] } : { $gt: idOf(tenantId, key) };

const scan =
  (opened: OpenGeneration): Reader['scan'] =>
  async (collection, limit, after) => {
    const filter = { ...(after === undefined ? {} : { _id: idsAfter(after) }), doc: { $exists: true } };
    const projection = { doc: 1, text: 1 };
    const options = { sort: { _id: 1 }, limit, batchSize: limit, hint: { _id: 1 }, projection } as const;
    const rows = await fetchMany(opened, declaredIn(opened, collection).name, { filter, options });
    return rows.map((row) => ({ ...partsOf(row._id), document: documentOf(row) as Document }));
  };

/** One aggregation, however many values. */
const countsBefore =
  (opened: OpenGeneration): Reader['countsBefore'] =>
  async (tenantId, collection, line, values) => {
    const declared = declaredIn(opened, collection);
    const [first, ...others] = values.map((value, at) => [
      ...lastBefore(declared, tenantId, line, value),
      { $addFields: { at: { $literal: at } } },
    ]);
    if (first === undefined) return [];
    const coll = collectionName(opened.id, collection);
    const pipeline = [...first, ...others.map((other) => ({ $unionWith: { coll, pipeline: other } }))];
    const found = await documentsIn(opened, collection)
      .aggregate<{ readonly at: number; readonly number: number }>(pipeline, { maxTimeMS: QUERY_MS })
      .toArray();
    if (found.length === 0) await assertNotDropped(opened, collection);
    const numbers = new Map(found.map(({ at, number }) => [at, number]));
    return values.map((_, at) => numbers.get(at) ?? 0);
  };

const find =
  (opened: OpenGeneration): Reader['find'] =>
  async (tenantId, collection, query) => {
    const asked = findIn(declaredIn(opened, collection), tenantId, query);
    const rows = await fetch(opened, collection, asked, QUERY_MS);
    if (query.areAllThere === true && rows.length < query.limit)
      throw lost(`documents of ${collection} of tenant ${tenantId} are missing.`);
    if (rows.length === 0) await assertNotDropped(opened, collection);
    return rows.map((row) => documentOf(row) as Document);
  };

const get =
  (opened: OpenGeneration): Reader['get'] =>
  async (tenantId, collection, key) => {
    declaredIn(opened, collection);
    const options = { projection: { _id: 0, doc: 1, text: 1 }, maxTimeMS: QUERY_MS };
    const found = await documentsIn(opened, collection).findOne({ _id: idOf(tenantId, key) }, options);
    // Parked tenants are looked for with every request and seldom found.
    if (found === null && collection !== PARKED) await assertNotDropped(opened, collection);
    return documentOf(found ?? undefined);
  };

const CONFIRM_MS = 100;

/** After a failover, a read may briefly show an older state: asks again before contents count as lost. */
const confirmed = async <T>(ask: () => Promise<T>): Promise<T> => {
  try {
    return await ask();
  } catch (error) {
    if (codeOf(error) !== 'contents_lost') throw error;
    await pause(CONFIRM_MS);
    return ask();
  }
};

/** Answers queries about a generation. */
export const generationReader = (opened: OpenGeneration): Reader => {
  const { guarded } = opened;
  const { run, place } = opened.connection;
  let lastSeen = -1;
  const late = () =>
    fault('read_models_unavailable', `MongoDB at ${place} did not answer within ${QUERY_MS} ms.`);

  const within = <T>(answer: Promise<T>): Promise<T> =>
    guarded(run(beforeDeadline(answer, monotonicMs() + QUERY_MS, late)));
  /** Only `applied` and `control` say that it was removed. */
  const asking =
    <A extends readonly unknown[], T>(query: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> =>
      within(confirmed(() => query(...args))).catch((error: unknown) => {
        if (codeOf(error) !== 'generation_removed') throw error;
        throw fault('read_models_unavailable', messageOf(error));
      });

  return {
    get: asking(get(opened)),
    find: asking(find(opened)),
    countsBefore: asking(countsBefore(opened)),
    scan: (...scope) => run(scan(opened)(...scope)),
    applied: async () => {
      const { applied, applied_n } = await within(opened.control());
      // Lower than before if the database was restored from an older backup.
      lastSeen = applied_n;
      return applied;
    },
    appliedToken: () => lastSeen,
  };
};
