import {
  fieldsOfIndex,
  numberingOf,
  type Collection,
  type Document,
  type Line,
  type Query,
  type Value,
} from '../../projections/projector';
import {
  COMMON_COLLECTIONS,
  allThere,
  type DocumentKey,
  type Scanned,
  type ScanStart,
  type Write,
} from '../../src/read-models/read-models';

interface Stored extends DocumentKey {
  readonly text: string;
}

/** The documents of one set. */
export type Documents = Map<string, Stored>;

const compareText = (one: string, other: string): number =>
  Buffer.compare(Buffer.from(one), Buffer.from(other));

const idOf = ({ tenantId, collection, key }: DocumentKey): string =>
  JSON.stringify([collection, tenantId, key]);

const order = (a: Value, b: Value): number =>
  typeof a === 'string' && typeof b === 'string' ? compareText(a, b) : Number(a) - Number(b);

const compareAll = (a: readonly Value[], b: readonly Value[]): number =>
  a.map((value, i) => order(value, b[i] as Value)).find((compared) => compared !== 0) ?? 0;

const parsed = ({ text }: Stored): Document => JSON.parse(text) as Document;

/** Questions about documents, answered by looking at all of them. */
export const memoryDocuments = (declared: readonly Collection[]) => {
  const collections = new Map([...declared, ...COMMON_COLLECTIONS].map((one) => [one.name, one]));
  const collectionOf = (name: string): Collection => {
    const found = collections.get(name);
    if (found === undefined) throw new Error(`There is no collection ${name}.`);
    return found;
  };

  const allIn = (documents: Documents, name: string): readonly Stored[] => {
    const declaredName = collectionOf(name).name;
    return [...documents.values()]
      .filter(({ collection }) => collection === declaredName)
      .toSorted((a, b) => compareText(a.tenantId, b.tenantId) || compareText(a.key, b.key));
  };

  const find = (documents: Documents, tenantId: string, name: string, query: Query): readonly Document[] => {
    const { index, equal = [], from, upTo, descending = false, limit } = query;
    const fields = index === undefined ? [] : fieldsOfIndex(collectionOf(name), index);
    if (equal.length > fields.length) throw new Error('There are more values than fields in the index.');
    const found = allIn(documents, name)
      .filter((row) => row.tenantId === tenantId)
      .map((row) => ({ key: row.key, document: parsed(row) }))
      .filter(({ document }) => fields.length === 0 || document[fields[0] as string] !== undefined)
      .map(({ key, document }) => {
        const values = [...fields.map((field) => document[field] as Value), key];
        return { document, equals: values.slice(0, equal.length), rest: values.slice(equal.length) };
      })
      .filter(({ equals }) => equals.every((value, i) => value === equal[i]))
      .filter(({ rest: [next] }) => from === undefined || order(next as Value, from) >= 0)
      .filter(({ rest: [next] }) => upTo === undefined || order(next as Value, upTo) <= 0)
      .toSorted((a, b) => compareAll(a.rest, b.rest))
      .map(({ document }) => document);
    return allThere((descending ? found.toReversed() : found).slice(0, limit), query, () => name);
  };

  const get = (documents: Documents, key: DocumentKey): Document | undefined => {
    collectionOf(key.collection);
    const found = documents.get(idOf(key));
    return found === undefined ? undefined : parsed(found);
  };

  return {
    get,
    find,
    countsBefore: (
      documents: Documents,
      tenantId: string,
      name: string,
      line: Line,
      values: readonly Value[],
    ): readonly number[] => {
      const { monotonicField } = numberingOf(collectionOf(name), line);
      const all = find(documents, tenantId, name, { ...line, limit: Infinity });
      return values.map(
        (value) => all.filter((document) => order(document[monotonicField] as Value, value) < 0).length,
      );
    },
    scan: (documents: Documents, name: string, limit: number, after?: ScanStart): readonly Scanned[] => {
      const isAfter = ({ tenantId, key }: Stored): boolean => {
        if (after === undefined) return true;
        const byTenant = compareText(tenantId, after.tenantId);
        if (byTenant !== 0) return byTenant > 0;
        return after.key === undefined || compareText(key, after.key) > 0;
      };
      return allIn(documents, name)
        .filter(isAfter)
        .slice(0, limit)
        .map(({ tenantId, key, text }) => ({ tenantId, key, text }));
    },
    /** All of them or, if a collection is unknown, none. */
    write: (documents: Documents, writes: readonly Write[]): void => {
      for (const { collection } of writes) collectionOf(collection);
      for (const { document, ...key } of writes)
        if (document === undefined) documents.delete(idOf(key));
        else {
          const { tenantId, collection, key: named } = key;
          documents.set(idOf(key), { tenantId, collection, key: named, text: JSON.stringify(document) });
        }
    },
  };
};
