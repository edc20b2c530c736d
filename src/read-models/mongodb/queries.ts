import type { Filter, FindOptions, IndexDescription } from 'mongodb';
import { fieldsOfIndex, numberingOf } from '../../../projections/projector';
import type { Collection, Line, Query, Value } from '../../../projections/projector';
import type { ScanStart } from '../read-models';
import { idOf, type Stored } from './layout';

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

/** A number is unique in its line, so that the index needs no key, which would be most of its size. */
const indexKeyOf = (collection: Collection, index: string): readonly string[] => {
  const isNumbered = Object.hasOwn(collection.numbered ?? {}, index);
  return [TENANT, ...fieldsOfIndex(collection, index).map(fieldOf), ...(isNumbered ? [] : [KEY])];
};

/** Leads from a value of the field that never decreases to the number. */
const monotonicKeyOf = (collection: Collection, index: string, monotonicField: string): readonly string[] => [
  TENANT,
  ...fieldsOfIndex(collection, index).toSpliced(-1, 0, monotonicField).map(fieldOf),
];

/** It has only documents with the first field after the tenant. */
const described = (name: string, fields: readonly string[]): IndexDescription => ({
  name,
  key: keysOf(fields),
  partialFilterExpression: { [fields[1] as string]: { $exists: true } },
});

/** The indexes of a collection besides `_id`. */
export const indexesFor = (collection: Collection): IndexDescription[] => [
  ...Object.keys(collection.indexes).map((name) => described(name, indexKeyOf(collection, name))),
  ...Object.entries(collection.numbered ?? {}).map(([name, field]) =>
    described(`${name}_before`, monotonicKeyOf(collection, name, field)),
  ),
];

/** All documents of a tenant, or a range of them by key. Objects sort after every text, and so after every key. */
const byKey = (tenantId: string, { from = '', upTo }: Query): Filter<Stored> => {
  const end =
    upTo === undefined ? { $lt: { tenant: tenantId, key: {} } } : { $lte: idOf(tenantId, String(upTo)) };
  return { _id: { $gte: idOf(tenantId, String(from)), ...end } } as Filter<Stored>;
};

const byIndex = (collection: Collection, tenantId: string, index: string, query: Query): Filter<Stored> => {
  const { equal = [], from, upTo } = query;
  const fields = fieldsOfIndex(collection, index).map(fieldOf);
  const filter: Record<string, unknown> = { [TENANT]: tenantId };
  equal.forEach((value, i) => (filter[fields[i] as string] = value));
  const range = Object.entries({ $gte: from, $lte: upTo }).filter(([, end]) => end !== undefined);
  if (range.length > 0) filter[fields[equal.length] ?? KEY] = Object.fromEntries(range);
  const [needed = ''] = fields;
  filter[needed] ??= { $ne: null };
  return filter;
};

export const findIn = (collection: Collection, tenantId: string, query: Query): MongoQuery => {
  const { index, equal = [], descending = false, limit } = query;
  const fields = index === undefined ? [] : fieldsOfIndex(collection, index);
  if (equal.length > fields.length)
    throw new Error(`There are more values than fields in the index ${index}.`);
  const filter = index === undefined ? byKey(tenantId, query) : byIndex(collection, tenantId, index, query);
  const key = index === undefined ? ['_id'] : indexKeyOf(collection, index);
  const unknown = index === undefined ? key : key.slice(equal.length + 1);
  const sort = keysOf(unknown, descending ? -1 : 1);
  const projection = { _id: 0, doc: 1, text: 1 };
  return { filter, options: { sort, limit, projection, hint: keysOf(key) } };
};

/** All tenants, ordered by tenant and key. */
export const scanFrom = (limit: number, after: ScanStart | undefined): MongoQuery => {
  const start = (from: ScanStart) =>
    from.key === undefined ? { $gte: idOf(from.tenantId, '') } : { $gt: idOf(from.tenantId, from.key) };
  const filter = after === undefined ? {} : { _id: start(after) };
  return { filter, options: { sort: { _id: 1 }, limit, hint: { _id: 1 } } };
};

/** Finds the last document of a line before a value. Its `number` is how many there are. */
export const lastBefore = (collection: Collection, tenantId: string, line: Line, value: Value) => {
  const { number, monotonicField } = numberingOf(collection, line);
  const key = monotonicKeyOf(collection, line.index, monotonicField);
  const values = [tenantId, ...line.equal, { $lt: value }];
  const filter = Object.fromEntries(values.map((one, at) => [key[at], one]));
  const sort = keysOf(key.slice(-2), -1);
  const projection = { _id: 0, [fieldOf(number)]: 1 };
  const query: MongoQuery = { filter, options: { sort, limit: 1, projection, hint: keysOf(key) } };
  return { number, query };
};
