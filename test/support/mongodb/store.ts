import type { Document } from 'mongodb';
import { collectionOf, refuseDuplicate, type Collection, type IndexSpec } from './collection';
import { keyOf, type Key } from './values';

/**
 * All collections as the primary has applied them, and which of the writes a majority has not confirmed yet. Those are
 * undone by a rollback, and not seen by reads with read concern `majority`.
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
  /** So many writes are not confirmed by a majority. */
  readonly unconfirmed: number;
  confirm(): void;
  rollBack(): void;
  /** Everything is lost. */
  clear(): void;
}

export type View = Pick<Store, 'collection' | 'namespaces'>;

type Undo = (collections: Map<string, Collection>) => void;

const copyOf = (collection: Collection): Collection => {
  const copy = collectionOf(collection.name);
  for (const { document } of collection.all()) copy.put(document);
  for (const { spec } of collection.indexes.values()) if (spec.name !== '_id_') copy.addIndex(spec);
  return copy;
};

const viewOf = (collections: Map<string, Collection>): View => ({
  collection: (namespace) => collections.get(namespace),
  namespaces: () => [...collections.keys()],
});

export const memoryStore = (): Store => {
  const collections = new Map<string, Collection>();
  let undos: Undo[] = [];
  let seen: View | undefined;

  const remember = (undo: Undo): void => {
    undos.push(undo);
    seen = undefined;
  };
  const create = (namespace: string): Collection => {
    const there = collections.get(namespace);
    if (there !== undefined) return there;
    const made = collectionOf(namespace);
    collections.set(namespace, made);
    remember((all) => void all.delete(namespace));
    return made;
  };
  const replace = (namespace: string, document: Document): void => {
    const collection = create(namespace);
    const id = keyOf(document['_id']);
    const before = collection.get(id);
    collection.put(document);
    remember((all) =>
      before === undefined ? all.get(namespace)?.remove(id) : all.get(namespace)?.put(before.document),
    );
  };
  const undoAll = (all: Map<string, Collection>): void => {
    for (const undo of undos.toReversed()) undo(all);
  };

  return {
    ...viewOf(collections),
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
      remember((all) => all.get(namespace)?.put(before.document));
    },
    addIndex: (namespace, spec) => {
      create(namespace).addIndex(spec);
      remember((all) => all.get(namespace)?.removeIndex(spec.name));
    },
    removeIndex: (namespace, name) => {
      const spec = collections.get(namespace)?.indexes.get(name)?.spec;
      collections.get(namespace)?.removeIndex(name);
      remember((all) => spec !== undefined && all.get(namespace)?.addIndex(spec));
    },
    drop: (namespace) => {
      const before = collections.get(namespace);
      if (before === undefined) return;
      collections.delete(namespace);
      remember((all) => void all.set(namespace, copyOf(before)));
    },
    committed: () => {
      if (undos.length === 0) return viewOf(collections);
      if (seen === undefined) {
        const copies = new Map([...collections].map(([name, one]) => [name, copyOf(one)]));
        undoAll(copies);
        seen = viewOf(copies);
      }
      return seen;
    },
    get unconfirmed() {
      return undos.length;
    },
    confirm: () => {
      undos = [];
      seen = undefined;
    },
    rollBack: () => {
      undoAll(collections);
      undos = [];
      seen = undefined;
    },
    clear: () => {
      collections.clear();
      undos = [];
      seen = undefined;
    },
  };
};
