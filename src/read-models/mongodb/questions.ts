import type { Filter, FindOptions, IndexDescription, Sort } from 'mongodb';
import {
  fieldsOfIndex,
  indexesOf,
  lineOf,
  neededBy,
  type Collection,
  type LinePart,
  type NumberedLine,
  type Query,
  type Value,
} from '../../../projections/projector';
import { storedText } from '../stored-text';
import { idOf, idsOf, storedTenant, type Stored } from './layout';

/**
 * Translates queries for MongoDB. Each names the index that it uses (`hint`): equality fields first, then the range,
 * sorted like the index. So its cost is proportional to its result.
 */
export interface Asked {
  readonly filter: Filter<Stored>;
  readonly options: FindOptions & { readonly hint: Readonly<Record<string, 1>>; readonly limit: number };
}

type Direction = 1 | -1;

const fieldOf = (field: string): string => `doc.${field}`;
const keysOf = (fields: readonly string[]): Record<string, 1> =>
  Object.fromEntries(fields.map((field) => [field, 1]));

const indexOf = (fields: readonly string[]): Record<string, 1> =>
  keysOf(['t', ...fields.map(fieldOf), '_id']);

const borderIndexOf = ({ equal, number }: NumberedLine, border: string): Record<string, 1> =>
  keysOf(['t', ...[...equal, border, number].map(fieldOf)]);

/** The indexes of a collection besides `_id`, without duplicates of the same fields in the same order. */
export const indexesFor = (collection: Collection): IndexDescription[] => {
  const all: IndexDescription[] = [
    ...Object.entries(indexesOf(collection)).map(([name, fields]) => ({ name, key: indexOf(fields) })),
    ...Object.entries(collection.lines ?? {}).flatMap(([line, declared]) =>
      declared.borders.map((border) => ({
        name: `${line}_before_${border}`,
        key: borderIndexOf(declared, border),
      })),
    ),
  ];
  const byFields = new Map(all.toReversed().map((index) => [Object.keys(index.key).join(), index]));
  return all.filter((index) => byFields.get(Object.keys(index.key).join()) === index);
};

/** The fields of all indexes. */
export const indexedFields = (collection: Collection): readonly string[] => [
  ...new Set([
    ...Object.values(indexesOf(collection)).flat(),
    ...Object.values(collection.lines ?? {}).flatMap(({ borders }) => borders),
  ]),
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
  const needed = fieldOf(neededBy(collection, index));
  if (filter[needed] === undefined) filter[needed] = { $ne: null };
  return filter;
};

export const findIn = (collection: Collection, tenantId: string, query: Query): Asked => {
  const { index, equal = [], descending = false, limit } = query;
  const fields = index === undefined ? [] : fieldsOfIndex(collection, index);
  if (equal.length > fields.length)
    throw new Error(`There are more values than fields in the index ${index}.`);
  const filter = index === undefined ? byKey(tenantId, query) : byIndex(collection, tenantId, index, query);
  const sort = sortBy([...fields.map(fieldOf), '_id'].slice(equal.length), descending ? -1 : 1);
  const projection = { _id: 0, doc: 1, text: 1 };
  const hint = index === undefined ? keysOf(['_id']) : indexOf(fields);
  return { filter, options: { sort, limit, batchSize: limit, projection, hint } };
};

export interface Border {
  /** The last document before the border. */
  readonly before: Asked;
  /** The first document that is not before it. */
  readonly from: Asked;
  readonly numberOf: (found: Stored | undefined) => number | undefined;
}

/** The queries for both sides of a border within part of a line. */
export const borderIn = (collection: Collection, tenantId: string, part: LinePart, value: string): Border => {
  const { equal = [], first = 1, last, border } = part;
  const declared = lineOf(collection, part);
  const number = fieldOf(declared.number);
  const along: Record<string, unknown> = { t: storedTenant(tenantId) };
  declared.equal.forEach((field, i) => (along[fieldOf(field)] = storedValue(equal[i] as Value)));
  const ask = (side: Record<string, unknown>, direction: Direction): Asked => ({
    filter: { ...along, [fieldOf(border)]: side, [number]: { $gte: first, $lte: last } },
    options: {
      sort: sortBy([fieldOf(border), number], direction),
      limit: 1,
      batchSize: 1,
      projection: { _id: 0, [number]: 1 },
      hint: borderIndexOf(declared, border),
    },
  });
  return {
    before: ask({ $lt: storedText(value) }, -1),
    from: ask({ $gte: storedText(value) }, 1),
    numberOf: (found) => found?.doc?.[declared.number] as number | undefined,
  };
};
