import type { Filter, FindOptions } from 'mongodb';
import type { Collection, Document } from '../../../projections/projector';
import { beforeDeadline, monotonicMs } from '../../clock';
import type { Position } from '../../event-log/event-log';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { together } from '../../together';
import type { DocumentKey, GenerationId, Reader, Scanned } from '../read-models';
import { collectionName, documentOf, idOf, idsOf, partsOf, type Stored } from './layout';
import { borderIn, findIn } from './questions';

/** The timeout of a query. */
const QUERY_MS = 900;

/** Per command, which is limited to 16 MB. */
const MAX_IDS = 10_000;

/** One incarnation of a generation, and where it is stored. */
export interface Incarnation {
  readonly connection: MongoConnection;
  readonly id: GenerationId;
  readonly incarnation: string;
  /** In the order of declaration. */
  readonly collections: readonly Collection[];
}

export const documentsIn = ({ connection, id, incarnation }: Incarnation, collection: string) =>
  connection.db.collection<Stored>(collectionName(id, incarnation, collection));

const declaredIn = ({ collections }: Incarnation, name: string): Collection => {
  const found = collections.find((collection) => collection.name === name);
  if (found === undefined) throw new Error(`There is no collection ${name}.`);
  return found;
};

interface Question {
  readonly filter: Filter<Stored>;
  readonly options: FindOptions;
}

const fetch = (incarnation: Incarnation, collection: string, { filter, options }: Question) =>
  documentsIn(incarnation, collection).find(filter, options).toArray();

/** The stored documents of some keys, including tombstones. */
export const loadStored = async (
  incarnation: Incarnation,
  keys: readonly DocumentKey[],
): Promise<readonly (Stored | undefined)[]> => {
  const wanted = new Map<string, Set<string>>();
  const ids = keys.map(({ tenantId, collection, key }) => {
    const id = idOf(tenantId, key);
    const collectionIds = wanted.get(declaredIn(incarnation, collection).name) ?? new Set<string>();
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
      for (const row of await fetch(incarnation, collection, question)) rows.set(row._id, row);
    }
  };
  await together([...wanted].map(([collection, wantedIds]) => load(collection, [...wantedIds])));
  return keys.map(({ collection }, i) => found.get(collection)?.get(ids[i] as string));
};

type After = NonNullable<Parameters<Reader['scan']>[2]>;

const idsAfter = ({ tenantId, key }: After) =>
  key === undefined ? { $gte: idsOf(tenantId)[0] } : { $gt: idOf(tenantId, key) };

const scan = async (
  incarnation: Incarnation,
  collection: string,
  limit: number,
  after?: After,
): Promise<readonly Scanned[]> => {
  const filter = { ...(after === undefined ? {} : { _id: idsAfter(after) }), doc: { $exists: true } };
  const projection = { doc: 1, text: 1 };
  const options = { sort: { _id: 1 }, limit, batchSize: limit, hint: { _id: 1 }, projection } as const;
  const rows = await fetch(incarnation, declaredIn(incarnation, collection).name, { filter, options });
  return rows.map((row) => ({ ...partsOf(row._id), document: documentOf(row) as Document }));
};

const countBefore = async (
  incarnation: Incarnation,
  tenantId: string,
  collection: string,
  part: Parameters<Reader['countBefore']>[2],
  value: string,
): Promise<number> => {
  const { before, from, numberOf } = borderIn(declaredIn(incarnation, collection), tenantId, part, value);
  const [[last], [next]] = await Promise.all([
    fetch(incarnation, collection, before),
    fetch(incarnation, collection, from),
  ]);
  const none = (part.first ?? 1) - 1;
  const count = numberOf(last) ?? none;
  const following = numberOf(next);
  const isEmpty = last === undefined && next === undefined;
  if (!isEmpty && count < part.last && following !== count + 1)
    throw new Error(`${collection} ${count + 1} of tenant ${tenantId} is missing.`);
  return count;
};

/** How far queries see: the position and the number of the last applied commit. */
export interface Applied {
  readonly position: Position | undefined;
  readonly n: number;
}

/**
 * Answers queries about one incarnation of a generation. `applied` is passed in, because generations share its query.
 */
export const generationReader = (incarnation: Incarnation, applied: () => Promise<Applied>): Reader => {
  const { run, place } = incarnation.connection;
  let lastSeen = -1;
  const late = () =>
    fault('read_models_unavailable', `MongoDB at ${place} did not answer within ${QUERY_MS} ms.`);

  const within = <T>(answer: Promise<T>): Promise<T> =>
    run(beforeDeadline(answer, monotonicMs() + QUERY_MS, late));

  return {
    get: async (tenantId, collection, key) => {
      declaredIn(incarnation, collection);
      const options = { projection: { _id: 0, doc: 1, text: 1 } };
      const found = documentsIn(incarnation, collection).findOne({ _id: idOf(tenantId, key) }, options);
      return documentOf((await within(found)) ?? undefined);
    },
    find: async (tenantId, collection, query) => {
      const asked = findIn(declaredIn(incarnation, collection), tenantId, query);
      const rows = await within(fetch(incarnation, collection, asked));
      return rows.map((row) => documentOf(row) as Document);
    },
    countBefore: (tenantId, collection, part, value) =>
      within(countBefore(incarnation, tenantId, collection, part, value)),
    scan: (collection, limit, after) => run(scan(incarnation, collection, limit, after)),
    applied: async () => {
      const { position, n } = await within(applied());
      lastSeen = Math.max(lastSeen, n);
      return position;
    },
    appliedToken: () => lastSeen,
  };
};
