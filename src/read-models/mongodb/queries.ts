import type { Filter, FindOptions, IndexDescription } from 'mongodb';
import { fieldsOfIndex, numberingOf } from '../../../projections/projector';
import type { Collection, Line, Query } from '../../../projections/projector';
import type { ScanStart } from '../read-models';
import { idOf, lineText, type Stored } from './layout';

/**
 * Translates queries for MongoDB. Each names the index that it uses (`hint`): equality fields first, then the range,
 * sorted like the index. So its cost is proportional to its result.
 */
export interface MongoQuery {
  readonly filter: Filter<Stored>;
  readonly options: FindOptions & { readonly hint: Readonly<Record<string, 1>>; readonly limit: number };
}

const TENANT = '_id.tenant';
const KEY = '_id.key';

const fieldOf = (field: string): string => `doc.${field}`;
const keysOf = <D extends 1 | -1 = 1>(fields: readonly string[], direction: D = 1 as D): Record<string, D> =>
  Object.fromEntries(fields.map((field) => [field, direction]));

const isNumbered = ({ numbered = {} }: Collection, index: string): boolean => Object.hasOwn(numbered, index);
const lineField = (index: string): string => `lines.${index}`;

/** An index that numbers lines begins with the line as text. */
const indexKeyOf = (collection: Collection, index: string): readonly string[] => {
  const fields = fieldsOfIndex(collection, index).map(fieldOf);
  return isNumbered(collection, index)
    ? [lineField(index), fields.at(-1) as string]
    : [TENANT, ...fields, KEY];
};

/** It has only documents with the first field after the tenant. */
const described = (collection: Collection, name: string): IndexDescription => {
  const key = indexKeyOf(collection, name);
  const needed = isNumbered(collection, name) ? lineField(name) : (key[1] as string);
  return { name, key: keysOf(key), partialFilterExpression: { [needed]: { $exists: true } } };
};

/** The indexes of a collection that number its lines, which every set has, or the others. */
export const indexesFor = (collection: Collection, areNumbered: boolean): IndexDescription[] =>
  Object.keys(collection.indexes)
    .filter((name) => isNumbered(collection, name) === areNumbered)
    .map((name) => described(collection, name));

/** All documents of a tenant, or a range of them by key. Objects sort after every text, and so after every key. */
const byKey = (tenantId: string, { from = '', upTo }: Query): Filter<Stored> => {
  const end =
    upTo === undefined ? { $lt: { tenant: tenantId, key: {} } } : { $lte: idOf(tenantId, String(upTo)) };
  return { _id: { $gte: idOf(tenantId, String(from)), ...end } } as Filter<Stored>;
};

const rangeOf = ({ from, upTo }: Query): Record<string, unknown> | undefined => {
  const ends = Object.entries({ $gte: from, $lte: upTo }).filter(([, end]) => end !== undefined);
  return ends.length === 0 ? undefined : Object.fromEntries(ends);
};

const byLine = (collection: Collection, tenantId: string, index: string, query: Query): Filter<Stored> => {
  const { equal = [] } = query;
  const { number } = numberingOf(collection, { index, equal });
  const range = rangeOf(query);
  return {
    [lineField(index)]: lineText(tenantId, equal),
    ...(range === undefined ? {} : { [fieldOf(number)]: range }),
  };
};

const byIndex = (collection: Collection, tenantId: string, index: string, query: Query): Filter<Stored> => {
  const { equal = [] } = query;
  const fields = fieldsOfIndex(collection, index).map(fieldOf);
  const filter: Record<string, unknown> = { [TENANT]: tenantId };
  equal.forEach((value, i) => (filter[fields[i] as string] = value));
  const range = rangeOf(query);
  if (range !== undefined) filter[fields[equal.length] ?? KEY] = range;
  const [needed = ''] = fields;
  filter[needed] ??= { $ne: null };
  return filter;
};

const PROJECTION: Readonly<Record<string, 0 | 1>> = { _id: 0, doc: 1, text: 1 };

export const findIn = (collection: Collection, tenantId: string, query: Query): MongoQuery => {
  const { index, equal = [], descending = false, limit } = query;
  const fields = index === undefined ? [] : fieldsOfIndex(collection, index);
  if (equal.length > fields.length)
    throw new Error(`There are more values than fields in the index ${index}.`);
  const ask = (filter: Filter<Stored>, key: readonly string[], known: number): MongoQuery => {
    const sort = keysOf(key.slice(known), descending ? -1 : 1);
    return { filter, options: { sort, limit, projection: PROJECTION, hint: keysOf(key) } };
  };
  if (index === undefined) return ask(byKey(tenantId, query), ['_id'], 0);
  const key = indexKeyOf(collection, index);
  return isNumbered(collection, index)
    ? ask(byLine(collection, tenantId, index, query), key, 1)
    : ask(byIndex(collection, tenantId, index, query), key, equal.length + 1);
};

/** All tenants, ordered by tenant and key. The gates are of no tenant. */
export const scanFrom = (limit: number, after: ScanStart = { tenantId: '\0' }): MongoQuery => {
  const { tenantId, key } = after;
  const start = key === undefined ? { $gte: idOf(tenantId, '') } : { $gt: idOf(tenantId, key) };
  return { filter: { _id: start }, options: { sort: { _id: 1 }, limit, hint: { _id: 1 } } };
};

/** The documents of a line that have these numbers. */
export const findAt = (
  collection: Collection,
  tenantId: string,
  line: Line,
  numbers: readonly number[],
): MongoQuery => {
  const { number } = numberingOf(collection, line);
  const filter = { ...byLine(collection, tenantId, line.index, { ...line, limit: 0 }), [fieldOf(number)]: { $in: numbers } }; // prettier-ignore
  const hint = keysOf(indexKeyOf(collection, line.index));
  return { filter, options: { limit: numbers.length, projection: PROJECTION, hint } };
};

/** Finds the ends of lines of one index, one seek each: the server skips from one line to the next (DISTINCT_SCAN). */
export const endsOf = (collection: Collection, { index, equal }: Line, lines: readonly string[]) => {
  const { number, monotonicField } = numberingOf(collection, { index, equal });
  const hint = keysOf(indexKeyOf(collection, index));
  const of = lineField(index);
  const ends = {
    number: { $first: `$${fieldOf(number)}` },
    value: { $first: `$${fieldOf(monotonicField)}` },
  };
  return {
    pipeline: [
      { $match: { [of]: { $in: lines } } },
      { $sort: keysOf(Object.keys(hint), -1) },
      { $group: { _id: `$${of}`, ...ends } },
    ],
    hint,
  };
};

const PARKED = 'doc.parked';

/** Of the progress of all tenants. */
export const PARKED_INDEX: IndexDescription = {
  name: 'parked',
  key: { [TENANT]: 1 },
  partialFilterExpression: { [PARKED]: { $exists: true } },
};

export const parkedAfter = (limit: number, afterTenant: string): MongoQuery => ({
  filter: { [PARKED]: { $exists: true }, [TENANT]: { $gt: afterTenant } },
  options: { sort: { [TENANT]: 1 }, limit, projection: PROJECTION, hint: { [TENANT]: 1 } },
});
