import type { Circumstances, EventType, Recorded, StreamKind } from '../src/domain/events';

/**
 * What is derived from the log, independent of how it runs and where it is kept. A projector is a table from event
 * type to the changes of documents; the engine reads and writes. Everything here is pure.
 */
export interface Projector {
  readonly name: string;
  /** Raise it whenever the same events would give other documents: a new version is built beside the old one. */
  readonly version: number;
  /** The tenant's streams that it follows. A bad event elsewhere does not concern it. */
  readonly streams: readonly StreamKind[];
  readonly collections: readonly Collection[];
  readonly on: Reducers;
}

export interface Collection {
  readonly name: string;
  /**
   * The fields of each index, in order. A document without the first of them is not in the index. Every document is
   * found by its key without one.
   */
  readonly indexes: Readonly<Record<string, readonly string[]>>;
  /** Numbered lines of documents. Each is an index, too: of the fields that are equal along it, then the number. */
  readonly lines?: Readonly<Record<string, NumberedLine>>;
}

/** Documents with equal values of some fields, numbered from 1 on without a gap. One without a number is in no line. */
export interface NumberedLine {
  readonly equal: readonly string[];
  readonly number: string;
  /**
   * Fields whose values never go down along the line, and that are looked up in it: `countBefore` takes no other. A store
   * that cannot search the numbers by bisection makes an index of each.
   */
  readonly borders: readonly string[];
}

/** Everything that a question may name as an index: those declared as such, and the lines. */
export const indexesOf = ({ indexes, lines = {} }: Collection): Collection['indexes'] => ({
  ...indexes,
  ...Object.fromEntries(Object.entries(lines).map(([name, { equal, number }]) => [name, [...equal, number]])),
});

/** The fields of one of them. */
export const fieldsOfIndex = (
  { name, indexes, lines = {} }: Collection,
  index: string,
): readonly string[] => {
  if (Object.hasOwn(indexes, index)) return indexes[index] as readonly string[];
  if (!Object.hasOwn(lines, index)) throw new Error(`The collection ${name} has no index ${index}.`);
  const { equal, number } = lines[index] as NumberedLine;
  return [...equal, number];
};

/** A document without a value of this field is not in the index. */
export const neededBy = (collection: Collection, index: string): string =>
  fieldsOfIndex(collection, index).at(Object.hasOwn(collection.lines ?? {}, index) ? -1 : 0) as string;

/** The line that a question names. */
export const lineOf = ({ name, lines = {} }: Collection, part: LinePart): NumberedLine => {
  const { line, equal = [], border } = part;
  const declared = Object.hasOwn(lines, line) ? lines[line] : undefined;
  if (declared?.equal.length !== equal.length || !declared.borders.includes(border))
    throw new Error(`The collection ${name} has no line ${line} with the border ${border}.`);
  return declared;
};

export type Document = Readonly<Record<string, unknown>>;

/** A document of the event's own tenant. The tenant is not named: no reducer can reach another one's. */
export interface Reference {
  readonly collection: string;
  readonly key: string;
}

/** A change says which documents it needs before it is applied, so that the engine can fetch them all at once. */
export interface Change {
  readonly touches: readonly Reference[];
  readonly apply: (documents: readonly (Document | undefined)[]) => readonly (Document | undefined)[];
}

/** Event types that a projector does not name change nothing. */
export type Reducers = {
  readonly [T in EventType]?: (event: Extract<Recorded, { readonly type: T }>) => readonly Change[];
};

/** Changes one document, which may be missing. Returning undefined removes it. */
export const change = <D extends object>(
  collection: string,
  key: string,
  next: (document: D | undefined) => D | undefined,
): Change => ({
  touches: [{ collection, key }],
  apply: ([document]) => [next(document as D | undefined) as Document | undefined],
});

/** Changes several documents that depend on each other. Those that are returned unchanged are not written. */
export const changeTogether = (
  touches: readonly Reference[],
  next: (documents: readonly (Document | undefined)[]) => readonly (Document | undefined)[],
): Change => ({ touches, apply: next });

/** Changes a document that must be there: an earlier event has made it. */
export const amend = <D extends object>(collection: string, key: string, next: (document: D) => D): Change =>
  change<D>(collection, key, (document) => {
    if (document === undefined) throw new Error(`The document ${collection}/${key} is missing.`);
    return next(document);
  });

/** A field that says who did it, where that is known. */
export const by = <K extends string>(field: K, event: Pick<Circumstances, 'actor'>) =>
  (event.actor === undefined ? {} : { [field]: event.actor.id }) as { [P in K]?: string };

/** What a question may ask of a read model. The tenant always comes first. */
export interface Reader {
  get(tenantId: string, collection: string, key: string): Promise<Document | undefined>;
  find(tenantId: string, collection: string, query: Query): Promise<readonly Document[]>;
  /**
   * The number of the last document in a part of a line whose border is before a value; the number before the part if
   * there is none. It takes one look-up, or a binary search.
   */
  countBefore(tenantId: string, collection: string, part: LinePart, value: string): Promise<number>;
}

/** A part of a declared line: the documents from one number to another. */
export interface LinePart {
  readonly line: string;
  readonly equal?: readonly Value[];
  /** 1 if left out. */
  readonly first?: number;
  readonly last: number;
  /** One of those that the line declares. */
  readonly border: string;
}

export type Value = string | number;

/** A part of one declared index: equal values of its first fields, then a range of the next one. */
export interface Selection {
  /** Left out: all documents, in the order of their keys. */
  readonly index?: string;
  readonly equal?: readonly Value[];
  /** Both ends belong to it. A range is asked of a field that numbers the documents, and orders them by it alone. */
  readonly from?: Value;
  readonly upTo?: Value;
}

export interface Query extends Selection {
  readonly descending?: boolean;
  readonly limit: number;
}
