import type { Filter, FindOptions, IndexDescription, Sort } from 'mongodb';
import {
  fieldsOfIndex,
  numberingOf,
  type Collection,
  type Line,
  type Query,
  type Value,
} from '../../../projections/projector';
import { storedText } from '../stored-text';
import { idOf, idsOf, storedTenant, type Stored } from './layout';

/**
 * Translates queries for MongoDB. Each names the index that it uses (`hint`): equality fields first, then the range,
 * sorted like the index. So its cost is proportional to its result.
 */
export interface MongoQuery {
  readonly filter: Filter<Stored>;
  readonly options: FindOptions & { readonly hint: Readonly<Record<string, 1>>; readonly limit: number };
}

type Direction = 1 | -1;

const fieldOf = (field: string): string => `doc.${field}`;
const keysOf = (fields: readonly string[]): Record<string, 1> =>
  Object.fromEntries(fields.map((field) => [field, 1]));

/** A number is unique in its line, so that the index needs no `_id`, which would be most of its size. */
const indexKeyOf = (collection: Collection, index: string): Record<string, 1> => {
  const isNumbered = Object.hasOwn(collection.numbered ?? {}, index);
  const fields = fieldsOfIndex(collection, index).map(fieldOf);
  return keysOf(['t', ...fields, ...(isNumbered ? [] : ['_id'])]);
};

/** Leads from a value of the field that never decreases to the number. */
const monotonicKeyOf = (collection: Collection, index: string, monotonicField: string) =>
  keysOf(['t', ...fieldsOfIndex(collection, index).toSpliced(-1, 0, monotonicField).map(fieldOf)]);

/** The indexes of a collection besides `_id`. */
export const indexesFor = (collection: Collection): IndexDescription[] => [
  ...Object.keys(collection.indexes).map((name) => ({ name, key: indexKeyOf(collection, name) })),
  ...Object.entries(collection.numbered ?? {}).map(([name, field]) => ({
    name: `${name}_before`,
    key: monotonicKeyOf(collection, name, field),
  })),
];

/** The fields of all indexes. */
export const indexedFields = ({ indexes, numbered = {} }: Collection): readonly string[] => [
  ...new Set([...Object.values(indexes).flat(), ...Object.values(numbered)]),
];

const storedValue = (value: Value): Value => (typeof value === 'string' ? storedText(value) : value);

const rangeOf = (from: unknown, upTo: unknown): Record<string, unknown> | undefined => {
  if (from === undefined && upTo === undefined) return undefined;
  return { ...(from === undefined ? {} : { $gte: from }), ...(upTo === undefined ? {} : { $lte: upTo }) };
};

const sortBy = (fields: readonly string[], direction: Direction): Sort =>
  Object.fromEntries(fields.map((field) => [field, direction]));

/** All documents of a tenant, or a range of them by key. */
const byKey = (tenantId: string, { from, upTo }: Query): Filter<Stored> => {
  const [first, end] = idsOf(tenantId);
  const low = from === undefined ? first : idOf(tenantId, String(from));
  const high = upTo === undefined ? { $lt: end } : { $lte: idOf(tenantId, String(upTo)) };
  return { _id: { $gte: low, ...high }, doc: { $exists: true } };
};

const byIndex = (collection: Collection, tenantId: string, index: string, query: Query): Filter<Stored> => {
  const { equal = [], from, upTo } = query;
  const fields = fieldsOfIndex(collection, index).map(fieldOf);
  const filter: Record<string, unknown> = { t: storedTenant(tenantId) };
  equal.forEach((value, i) => (filter[fields[i] as string] = storedValue(value)));
  const isKeyRange = equal.length === fields.length;
  const end = (value: Value | undefined) =>
    value === undefined ? undefined : isKeyRange ? idOf(tenantId, String(value)) : storedValue(value);
  const range = rangeOf(end(from), end(upTo));
  if (range !== undefined) filter[fields[equal.length] ?? '_id'] = range;
  const [needed = ''] = fields;
  if (filter[needed] === undefined) filter[needed] = { $ne: null };
  return filter;
};

export const findIn = (collection: Collection, tenantId: string, query: Query): MongoQuery => {
  const { index, equal = [], descending = false, limit } = query;
  const fields = index === undefined ? [] : fieldsOfIndex(collection, index);
  if (equal.length > fields.length)
    throw new Error(`There are more values than fields in the index ${index}.`);
  const filter = index === undefined ? byKey(tenantId, query) : byIndex(collection, tenantId, index, query);
  const hint = index === undefined ? keysOf(['_id']) : indexKeyOf(collection, index);
  const known = new Set(['t', ...fields.slice(0, equal.length).map(fieldOf)]);
  const sort = sortBy(
    Object.keys(hint).filter((field) => !known.has(field)),
    descending ? -1 : 1,
  );
  const projection = { _id: 0, doc: 1, text: 1 };
  return { filter, options: { sort, limit, batchSize: limit, projection, hint } };
};

/** The stages that find the number of the last document of a line before a value. The server chooses the index. */
export const lastBefore = (
  collection: Collection,
  tenantId: string,
  { index, equal }: Line,
  value: Value,
): Record<string, unknown>[] => {
  const { number, monotonicField } = numberingOf(collection, { index, equal });
  const fields = fieldsOfIndex(collection, index).map(fieldOf);
  const filter = Object.fromEntries(equal.map((one, i) => [fields[i], storedValue(one)]));
  return [
    {
      $match: {
        t: storedTenant(tenantId),
        ...filter,
        [fieldOf(monotonicField)]: { $lt: storedValue(value) },
      },
    },
    { $sort: sortBy([fieldOf(monotonicField), fieldOf(number)], -1) },
    { $limit: 1 },
    { $project: { _id: 0, number: `$${fieldOf(number)}` } },
  ];
};
