import type { EventType, Recorded, StreamKind } from '../src/domain/events';
import type { Hash } from '../src/evidence/tree';

/**
 * What is derived from the log, independent of how it runs and where it is stored. A projector maps event types to
 * changes of documents; the engine does the reading and writing. Everything here is pure.
 */
export interface Projector {
  readonly name: string;
  /** Raise it whenever the same events would produce other documents: a new version is built next to the old one. */
  readonly version: number;
  readonly collections: readonly Collection[];
  readonly on: Reducers;
  /** The changes for an event that the operator has set aside, which may be unreadable. Omitted: none. */
  readonly onSetAside?: (event: SetAsideEvent) => readonly Change[];
}

/** The leaf of an event as it is stored. It is computed when it is called. */
export type Leaf = () => Hash;

export interface SetAsideEvent {
  readonly id: string;
  readonly position: string;
  readonly recordedAt: string;
  readonly type: string;
  readonly kind: StreamKind;
  readonly leaf: Leaf;
}

export interface Collection {
  readonly name: string;
  /**
   * The fields of each index, in order. A document without the first field is not in the index. Finding documents by key
   * needs no index.
   */
  readonly indexes: Readonly<Record<string, readonly string[]>>;
  /**
   * Indexes whose last field numbers the documents that are equal in the others, from 1 without gaps. Each has a field
   * whose values never decrease in the order of these numbers.
   */
  readonly numbered?: Readonly<Record<string, string>>;
  /**
   * It has one document for each tenant, which nearly every event changes. That is kept in the progress of the tenant, so
   * that it costs no write of its own: the collection has no indexes, and only `carriedIn` finds its documents.
   */
  readonly isCarried?: true;
}

export const fieldsOfIndex = ({ name, indexes }: Collection, index: string): readonly string[] => {
  if (!Object.hasOwn(indexes, index)) throw new Error(`The collection ${name} has no index ${index}.`);
  return indexes[index] as readonly string[];
};

/** The field that numbers the documents of a line, and the one that never decreases. */
export const numberingOf = (collection: Collection, { index, equal }: Line) => {
  const { name, numbered = {} } = collection;
  const [number, ...more] = fieldsOfIndex(collection, index).slice(equal.length);
  const monotonicField = numbered[index];
  if (monotonicField === undefined || number === undefined || more.length > 0)
    throw new Error(`In ${name}, ${index} does not number documents by ${equal.length} values.`);
  return { number, monotonicField };
};

export type Document = Readonly<Record<string, unknown>>;

/** The collection of the progress of each tenant, under this key. The engine keeps it, not a projector. */
export const PROGRESS: Collection = { name: 'progress', indexes: {} };
export const PROGRESS_KEY = 'tenant';

/** The documents that the progress of a tenant carries, by collection. */
export type Carried = Readonly<Record<string, Document>>;

/** The document of a carried collection. */
export const carriedIn = async (reader: Pick<Reader, 'get'>, tenantId: string, collection: string) => {
  const progress = await reader.get(tenantId, PROGRESS.name, PROGRESS_KEY);
  return (progress as { readonly carried?: Carried } | undefined)?.carried?.[collection];
};

/** A document of the event's own tenant. The tenant is implied, so no reducer can reach another tenant's documents. */
export interface Reference {
  readonly collection: string;
  readonly key: string;
  /** There is hardly ever such a document yet, so it is loaded only if it turns out that there is. */
  readonly isNew?: boolean;
}

/** A line of the event's own tenant, in a collection. */
export interface LineReference extends Line {
  readonly collection: string;
}

type Found = readonly (Document | undefined)[];

export interface Change {
  readonly touches: readonly Reference[];
  /** Lines whose ends it needs, as they are before it. A row that it adds to their collection is the next one of each. */
  readonly lines?: readonly LineReference[];
  readonly apply: (documents: Found, ends: readonly LineEnd[]) => Found;
}

/** Event types without an entry change nothing. */
export type Reducers = {
  readonly [T in EventType]?: (event: Extract<Recorded, { type: T }>, leaf: Leaf) => readonly Change[];
};

/** Changes one document, which may be missing. Returning undefined deletes it. */
export const change = <D extends object>(
  collection: string,
  key: string,
  next: (document: D | undefined) => D | undefined,
): Change => ({
  touches: [{ collection, key }],
  apply: ([document]) => [next(document as D | undefined) as Document | undefined],
});

/** Changes several documents that depend on each other, or on the ends of lines. */
export const changeTogether = (
  touches: readonly Reference[],
  next: Change['apply'],
  lines: readonly LineReference[] = [],
): Change => ({ touches, lines, apply: next });

/** Changes a document that must exist, because an earlier event created it. */
export const amend = <D extends object>(collection: string, key: string, next: (document: D) => D): Change =>
  change<D>(collection, key, (document) => {
    if (document === undefined) throw new Error(`The document ${collection}/${key} is missing.`);
    return next(document);
  });

/** The queries of a read model. The tenant always comes first. */
export interface Reader {
  get(tenantId: string, collection: string, key: string): Promise<Document | undefined>;
  find(tenantId: string, collection: string, query: Query): Promise<readonly Document[]>;
  /** The documents of a line with these numbers, in their order. If one is missing, the read model is damaged, and it rejects. */
  at(
    tenantId: string,
    collection: string,
    line: Line,
    numbers: readonly number[],
  ): Promise<readonly Document[]>;
  /** The ends of many lines, of any tenants, in their order. Takes about one lookup for each. */
  lastOf(lines: readonly TenantLine[]): Promise<readonly LineEnd[]>;
}

/** The documents of a numbered index that have these values. */
export interface Line {
  readonly index: string;
  readonly equal: readonly Value[];
}

export interface TenantLine extends LineReference {
  readonly tenantId: string;
}

/** What the last document of a line says. */
export interface LineEnd {
  /** Its number, which is how many documents the line has. 0: none. */
  readonly number: number;
  /** Its value in the field that never decreases. Undefined: there is no document. */
  readonly value: Value | undefined;
}

export type Value = string | number;

/** Part of a declared index: equal values in its first fields, then a range in the next one. */
export interface Selection {
  /** Left out: all documents, ordered by key. */
  readonly index?: string;
  readonly equal?: readonly Value[];
  /** Both ends are inclusive. Documents with equal values come in any order. */
  readonly from?: Value;
  readonly upTo?: Value;
}

export interface Query extends Selection {
  readonly descending?: boolean;
  readonly limit: number;
}

/** All projectors as the one that runs. Their collections have different names. */
export interface ComposedProjector {
  /** The layout of the sets, and the names and versions of all projectors. Part of the names of files. */
  readonly version: string;
  readonly collections: readonly Collection[];
  /** The names of the collections whose documents are carried in the progress. They are not among the others. */
  readonly carried: ReadonlySet<string>;
  /** The changes of all projectors for an event, in their order. */
  readonly changesOf: (event: Recorded, leaf: Leaf) => readonly Change[];
  readonly onSetAside: (event: SetAsideEvent) => readonly Change[];
}

/** Raise it when stores keep sets in another way. */
const LAYOUT = 3;

type AnyReducer = ComposedProjector['changesOf'];

const versionOf = (projectors: readonly Projector[]): string =>
  [LAYOUT, ...projectors.map(({ name, version }) => `${name}${version}`)].join('-');

export const compose = (projectors: readonly Projector[]): ComposedProjector => {
  const reducers = new Map<EventType, readonly AnyReducer[]>();
  for (const { on } of projectors)
    for (const [type, reducer] of Object.entries(on) as [EventType, AnyReducer][])
      reducers.set(type, [...(reducers.get(type) ?? []), reducer]);
  const all = projectors.flatMap(({ collections }) => collections);
  return {
    version: versionOf(projectors),
    collections: all.filter(({ isCarried }) => isCarried !== true),
    carried: new Set(all.flatMap(({ name, isCarried }) => (isCarried === true ? [name] : []))),
    changesOf: (event, leaf) => (reducers.get(event.type) ?? []).flatMap((reducer) => reducer(event, leaf)),
    onSetAside: (event) => projectors.flatMap(({ onSetAside }) => onSetAside?.(event) ?? []),
  };
};
