import { BSON, type Document } from 'mongodb';
import { failure } from './failure';
import { sortedList, type SortedList } from './sorted-list';
import { inverted, keyOf, valuesAt, type Key } from './values';

export interface Stored {
  readonly id: Key;
  readonly document: Document;
  readonly bytes: number;
}

export interface IndexSpec {
  readonly name: string;
  readonly key: Document;
  readonly unique: boolean;
  readonly expireAfterSeconds?: number;
}

export interface Index {
  readonly spec: IndexSpec;
  readonly fields: readonly (readonly [path: string, isDescending: boolean])[];
  readonly entries: SortedList<Stored>;
  /** An array was stored in one of its fields. This server does not search such an index. */
  isMultikey: boolean;
}

/** Documents by `_id`, and indexes over them. */
export interface Collection {
  readonly name: string;
  readonly indexes: ReadonlyMap<string, Index>;
  readonly size: number;
  get(id: Key): Stored | undefined;
  all(): IterableIterator<Stored>;
  /** Refuses a document that breaks a unique index or is too large. */
  put(document: Document): void;
  remove(id: Key): void;
  addIndex(spec: IndexSpec): void;
  removeIndex(name: string): void;
}

/** "MongoDB Limits and Thresholds" in its documentation. */
export const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;
const MAX_DEPTH = 100;

const PRIMARY = '_id_';

const isTooDeep = (value: unknown, depth = 0): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (depth > MAX_DEPTH || Object.values(value).some((item) => isTooDeep(item, depth + 1)));

const checkedSize = (document: Document): number => {
  if (Array.isArray(document['_id'])) throw failure(53, "The '_id' value cannot be of type array");
  if (isTooDeep(document)) throw failure(15, `Document exceeds maximum nested depth of ${MAX_DEPTH}`);
  const bytes = BSON.calculateObjectSize(document);
  if (bytes > MAX_DOCUMENT_BYTES)
    throw failure(
      10334,
      `BSONObj size: ${bytes} is invalid. Size must be between 0 and ${MAX_DOCUMENT_BYTES}`,
    );
  return bytes;
};

const fieldsOf = (key: Document): Index['fields'] =>
  Object.entries(key).map(([path, direction]) => [path, Number(direction) < 0]);

/** The keys under which an index holds a document: one, or one per element of an array. */
const entryKeys = (index: Index, document: Document): readonly Key[] => {
  let keys: readonly Key[] = [''];
  for (const [path, isDescending] of index.fields) {
    const found = valuesAt(document, path);
    if (found.some(Array.isArray) || found.length > 1) index.isMultikey = true;
    const values =
      found.length === 0 ? [null] : found.flatMap((item) => (Array.isArray(item) ? item : [item]));
    const parts = (values.length === 0 ? [null] : values).map(keyOf);
    keys = parts.flatMap((part) => keys.map((key) => key + (isDescending ? inverted(part) : part)));
  }
  return keys;
};

const duplicate = (collection: string, { spec }: Index, document: Document): Error => {
  const keyValue = Object.fromEntries(
    Object.keys(spec.key).map((path) => [path, valuesAt(document, path)[0] ?? null]),
  );
  const shown = JSON.stringify(keyValue);
  return failure(
    11000,
    `E11000 duplicate key error collection: ${collection} index: ${spec.name} dup key: ${shown}`,
    { keyPattern: spec.key, keyValue },
  );
};

export const collectionOf = (name: string): Collection => {
  const documents = new Map<Key, Stored>();
  const indexes = new Map<string, Index>();

  const checkUnique = (index: Index, { id, document }: Stored): void => {
    if (!index.spec.unique || index.spec.name === PRIMARY) return;
    for (const key of entryKeys(index, document))
      for (const other of index.entries.between(key, `${key}\xff`))
        if (other.id !== id) throw duplicate(name, index, document);
  };
  const link = (index: Index, stored: Stored): void => {
    for (const key of entryKeys(index, stored.document)) index.entries.put(key + stored.id, stored);
  };
  const unlink = (index: Index, stored: Stored): void => {
    for (const key of entryKeys(index, stored.document)) index.entries.remove(key + stored.id);
  };
  const addIndex = (spec: IndexSpec): void => {
    const index: Index = { spec, fields: fieldsOf(spec.key), entries: sortedList(), isMultikey: false };
    for (const stored of documents.values()) {
      checkUnique(index, stored);
      link(index, stored);
    }
    indexes.set(spec.name, index);
  };
  addIndex({ name: PRIMARY, key: { _id: 1 }, unique: true });

  return {
    name,
    indexes,
    get size() {
      return documents.size;
    },
    get: (id) => documents.get(id),
    all: () => documents.values(),
    put: (document) => {
      const stored = { id: keyOf(document['_id']), document, bytes: checkedSize(document) };
      for (const index of indexes.values()) checkUnique(index, stored);
      const before = documents.get(stored.id);
      for (const index of indexes.values()) {
        if (before !== undefined) unlink(index, before);
        link(index, stored);
      }
      documents.set(stored.id, stored);
    },
    remove: (id) => {
      const before = documents.get(id);
      if (before === undefined) return;
      for (const index of indexes.values()) unlink(index, before);
      documents.delete(id);
    },
    addIndex,
    removeIndex: (index) => void indexes.delete(index),
  };
};

/** An insertion with an `_id` that already exists. */
export const refuseDuplicate = (collection: Collection, document: Document): void => {
  if (collection.get(keyOf(document['_id'])) !== undefined)
    throw duplicate(collection.name, collection.indexes.get(PRIMARY)!, document);
};
