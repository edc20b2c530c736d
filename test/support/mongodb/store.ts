import type { Document } from 'mongodb';
import { collectionOf, refuseDuplicate, type Collection, type IndexSpec } from './collection';
import { keyOf, type Key } from './values';

/**
 * All collections as the primary has applied them, and which writes a majority has not confirmed yet. Those are undone
 * by a rollback, and invisible to reads with read concern `majority`.
 */
export interface Store {
  collection(namespace: string): Collection | undefined;
  namespaces(): readonly string[];
  create(namespace: string): Collection;
  insert(namespace: string, document: Document): void;
  replace(namespace: string, document: Document): void;
  remove(namespace: string, id: Key): void;
  addIndex(namespace: string, spec: IndexSpec): void;
  removeIndex(namespace: string, name: string): void;
  drop(namespace: string): void;
  /** What reads with read concern `majority` see. */
  committed(): View;
  /** How many writes are not confirmed by a majority. */
  readonly unconfirmed: number;
  confirm(): void;
  rollBack(): void;
  /** Deletes everything. */
  clear(): void;
}

export type View = Pick<Store, 'collection'>;

/** Undoes one write to one collection. */
interface Undo {
  readonly namespace: string;
  readonly undo: (collections: Map<string, Collection>) => unknown;
}

const copyOf = (collection: Collection): Collection => {
  const copy = collectionOf(collection.name);
  for (const { document } of collection.all()) copy.put(document);
  for (const { spec } of collection.indexes.values()) if (spec.name !== '_id_') copy.addIndex(spec);
  return copy;
};

export const memoryStore = (): Store => {
  const collections = new Map<string, Collection>();
  let undos: Undo[] = [];
  /** Collections as a majority has them, where they differ and have been read. */
  const seen = new Map<string, Collection | undefined>();

  const remember = (namespace: string, undo: Undo['undo']): void => {
    undos.push({ namespace, undo });
    seen.delete(namespace);
  };
  const create = (namespace: string): Collection => {
    const there = collections.get(namespace);
    if (there !== undefined) return there;
    const made = collectionOf(namespace);
    collections.set(namespace, made);
    remember(namespace, (all) => all.delete(namespace));
    return made;
  };
  const replace = (namespace: string, document: Document): void => {
    const collection = create(namespace);
    const id = keyOf(document['_id']);
    const before = collection.get(id);
    collection.put(document);
    remember(namespace, (all) =>
      before === undefined ? all.get(namespace)?.remove(id) : all.get(namespace)?.put(before.document),
    );
  };
  const confirm = (): void => {
    undos = [];
    seen.clear();
  };
  const committed = (namespace: string): Collection | undefined => {
    const there = collections.get(namespace);
    const own = undos.filter((undo) => undo.namespace === namespace);
    if (own.length === 0) return there;
    if (!seen.has(namespace)) {
      const copy = new Map(there === undefined ? [] : [[namespace, copyOf(there)]]);
      for (const { undo } of own.toReversed()) undo(copy);
      seen.set(namespace, copy.get(namespace));
    }
    return seen.get(namespace);
  };

  return {
    collection: (namespace) => collections.get(namespace),
    namespaces: () => [...collections.keys()],
    create,
    insert: (namespace, document) => {
      refuseDuplicate(create(namespace), document);
      replace(namespace, document);
    },
    replace,
    remove: (namespace, id) => {
      const before = collections.get(namespace)?.get(id);
      if (before === undefined) return;
      collections.get(namespace)?.remove(id);
      remember(namespace, (all) => all.get(namespace)?.put(before.document));
    },
    addIndex: (namespace, spec) => {
      create(namespace).addIndex(spec);
      remember(namespace, (all) => all.get(namespace)?.removeIndex(spec.name));
    },
    removeIndex: (namespace, name) => {
      const spec = collections.get(namespace)?.indexes.get(name)?.spec;
      collections.get(namespace)?.removeIndex(name);
      remember(namespace, (all) => spec !== undefined && all.get(namespace)?.addIndex(spec));
    },
    drop: (namespace) => {
      const before = collections.get(namespace);
      if (before === undefined) return;
      collections.delete(namespace);
      remember(namespace, (all) => all.set(namespace, copyOf(before)));
    },
    committed: () => ({ collection: committed }),
    get unconfirmed() {
      return undos.length;
    },
    confirm,
    rollBack: () => {
      for (const { undo } of undos.toReversed()) undo(collections);
      confirm();
    },
    clear: () => {
      collections.clear();
      confirm();
    },
  };
};
