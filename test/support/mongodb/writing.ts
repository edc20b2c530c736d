import { BSON, type Document } from 'mongodb';
import { failure, isFailure } from './failure';
import { ask, numberOf, projectionOf } from './reading';
import type { Store } from './store';
import { changeOf, isReplacement, seedOf } from './update';
import { isSame, keyOf } from './values';

/** Called before every write of a command, with its number: where faults strike and other connections interleave. */
export type Step = (write: number) => Promise<void>;

/** The result of one write, kept so that a retryable write is not made twice. */
interface Outcome {
  readonly n: number;
  readonly modified?: number;
  readonly upsertedId?: unknown;
  readonly value?: unknown;
}

/** The writes of one command that were already made, if the client retries it. */
export type Retried = Map<number, Outcome>;

interface Writing {
  readonly store: Store;
  readonly namespace: string;
  readonly step: Step;
  readonly done: Retried;
}

const withId = (document: Document): Document =>
  document['_id'] === undefined ? { _id: new BSON.ObjectId(), ...document } : document;

const once = (done: Retried, write: number, make: () => Outcome): Outcome => {
  const outcome = done.get(write) ?? make();
  done.set(write, outcome);
  return outcome;
};

const writeAll = async (
  { step, done }: Writing,
  writes: readonly Document[],
  isOrdered: boolean,
  make: (write: Document) => Outcome,
): Promise<Document> => {
  const writeErrors: Document[] = [];
  const upserted: Document[] = [];
  const total = { n: 0, nModified: 0 };
  for (const [index, write] of writes.entries()) {
    if (isOrdered && writeErrors.length > 0) break;
    try {
      await step(index);
      const { n, modified = 0, upsertedId } = once(done, index, () => make(write));
      total.n += n;
      total.nModified += modified;
      if (upsertedId !== undefined) upserted.push({ index, _id: upsertedId });
    } catch (error) {
      if (!isFailure(error)) throw error;
      writeErrors.push({ index, code: error.code, ...error.more, errmsg: error.message });
    }
  }
  return {
    ...total,
    ...(upserted.length > 0 ? { upserted } : {}),
    ...(writeErrors.length > 0 ? { writeErrors } : {}),
    ok: 1,
  };
};

const isOrdered = (body: Document): boolean => body['ordered'] !== false;

export const insert = async (writing: Writing, body: Document): Promise<Document> => {
  const { nModified: _, ...reply } = await writeAll(
    writing,
    body['documents'] as Document[],
    isOrdered(body),
    (document) => {
      writing.store.insert(writing.namespace, withId(document));
      return { n: 1 };
    },
  );
  return reply;
};

interface Update {
  readonly filter: Document;
  readonly update: unknown;
  readonly upsert: boolean;
  readonly multi: boolean;
  readonly sort?: unknown;
}

interface Updated {
  readonly outcome: Outcome;
  readonly before?: Document;
  readonly after?: Document;
}

/** Finds and then writes: a racing upsert finds nothing and is refused by the unique index (E11000). */
const updateOne = (
  { store, namespace }: Writing,
  { filter, update, upsert, multi, sort }: Update,
): Updated => {
  const change = changeOf(update);
  if (multi && isReplacement(update))
    throw failure(9, 'multi update is not supported for replacement-style update');
  const collection = store.collection(namespace);
  const { found } = ask(collection, { filter, sort, limit: multi ? 0 : 1 });
  if (found.length === 0 && upsert) {
    const seed = seedOf(filter);
    const after = withId(change(isReplacement(update) ? idOf(seed) : seed, true));
    store.insert(namespace, after);
    return { outcome: { n: 1, upsertedId: after['_id'] }, after };
  }
  let modified = 0;
  let after: Document | undefined;
  for (const { document } of found) {
    after = change(document, false);
    if (isSame(after, document)) continue;
    store.replace(namespace, after);
    modified += 1;
  }
  const before = found[0]?.document;
  return { outcome: { n: found.length, modified }, ...(before && { before }), ...(after && { after }) };
};

const idOf = (seed: Document): Document => (seed['_id'] === undefined ? {} : { _id: seed['_id'] });

const refuseOptions = (write: Document, names: readonly string[]): void => {
  const name = names.find((option) => write[option] !== undefined);
  if (name !== undefined) throw failure(9, `This server does not know the option ${name}.`);
};

export const update = (writing: Writing, body: Document): Promise<Document> =>
  writeAll(writing, body['updates'] as Document[], isOrdered(body), (write) => {
    refuseOptions(write, ['arrayFilters', 'collation', 'c']);
    const { q, u, upsert, multi, sort } = write;
    return updateOne(writing, {
      filter: q as Document,
      update: u,
      upsert: upsert === true,
      multi: multi === true,
      sort,
    }).outcome;
  });

export const remove = async (writing: Writing, body: Document): Promise<Document> => {
  const { store, namespace } = writing;
  const writes = body['deletes'] as Document[];
  const { nModified: _, ...reply } = await writeAll(writing, writes, isOrdered(body), (write) => {
    refuseOptions(write, ['collation']);
    const limit = numberOf(write['limit']);
    const { found } = ask(store.collection(namespace), { filter: write['q'] as Document, limit });
    for (const { id } of found) store.remove(namespace, id);
    return { n: found.length };
  });
  return reply;
};

export const findAndModify = async (writing: Writing, body: Document): Promise<Document> => {
  const { store, namespace, step, done } = writing;
  refuseOptions(body, ['arrayFilters', 'collation', 'let']);
  await step(0);
  const filter = (body['query'] ?? {}) as Document;
  const project = projectionOf(body['fields']);
  const outcome = once(done, 0, () => {
    if (body['remove'] === true) {
      const stored = ask(store.collection(namespace), { filter, sort: body['sort'], limit: 1 }).found[0];
      if (stored !== undefined) store.remove(namespace, stored.id);
      return { n: stored === undefined ? 0 : 1, value: stored?.document };
    }
    const upsert = body['upsert'] === true;
    const made = updateOne(writing, {
      filter,
      update: body['update'],
      upsert,
      multi: false,
      sort: body['sort'],
    });
    return { ...made.outcome, value: body['new'] === true ? made.after : made.before };
  });
  const { n, upsertedId, value } = outcome;
  const isUpdate = body['remove'] !== true;
  return {
    lastErrorObject: {
      n,
      ...(isUpdate ? { updatedExisting: n > 0 && upsertedId === undefined } : {}),
      ...(upsertedId === undefined ? {} : { upserted: upsertedId }),
    },
    value: value === undefined ? null : project(value as Document),
    ok: 1,
  };
};

const sameIndex = (left: Document, right: Document): boolean =>
  keyOf(left['key']) === keyOf(right['key']) &&
  Object.keys(left['key'] as Document).join() === Object.keys(right['key'] as Document).join();

export const createIndexes = ({ store, namespace }: Writing, body: Document): Document => {
  const isNew = store.collection(namespace) === undefined;
  const collection = store.create(namespace);
  const before = collection.indexes.size;
  for (const spec of body['indexes'] as Document[]) {
    refuseOptions(spec, ['partialFilterExpression', 'collation', 'sparse', 'weights']);
    const name = String(spec['name']);
    const isUnique = spec['unique'] === true;
    const ttl = spec['expireAfterSeconds'];
    const there = [...collection.indexes.values()].find(
      (index) => index.spec.name === name || sameIndex(index.spec, spec),
    );
    if (there !== undefined) {
      if (there.spec.name !== name)
        throw failure(85, `Index already exists with a different name: ${there.spec.name}`);
      const hasSameOptions = there.spec.unique === (isUnique || name === '_id_');
      if (!sameIndex(there.spec, spec) || !hasSameOptions || there.spec.expireAfterSeconds !== seconds(ttl))
        throw failure(86, `An existing index has the same name as the requested index: ${name}`);
      continue;
    }
    store.addIndex(namespace, {
      name,
      key: spec['key'] as Document,
      unique: isUnique,
      ...(ttl === undefined ? {} : { expireAfterSeconds: Number(ttl) }),
    });
  }
  const after = collection.indexes.size;
  return {
    numIndexesBefore: before,
    numIndexesAfter: after,
    createdCollectionAutomatically: isNew,
    ...(before === after ? { note: 'all indexes already exist' } : {}),
    ok: 1,
  };
};

const seconds = (value: unknown): number | undefined => (value === undefined ? undefined : Number(value));

export const dropIndexes = ({ store, namespace }: Writing, body: Document): Document => {
  const collection = store.collection(namespace);
  if (collection === undefined) throw failure(26, `ns not found ${namespace}`);
  const before = collection.indexes.size;
  const wanted: unknown = body['index'];
  const names =
    wanted === '*' ? [...collection.indexes.keys()].filter((name) => name !== '_id_') : [wanted].flat();
  for (const name of names.map(String)) {
    if (!collection.indexes.has(name)) throw failure(27, `index not found with name [${name}]`);
    if (name === '_id_') throw failure(72, 'cannot drop _id index');
    store.removeIndex(namespace, name);
  }
  return { nIndexesWas: before, ok: 1 };
};
