import type { Document } from 'mongodb';
import type { Collection, Index, Stored } from './collection';
import { operatorsOf } from './filter';
import { inverted, isDocument, keyOf, typeOf, valuesAt, type Key } from './values';

/** How a query is executed: by an index that its filter bounds or its sort follows, or by a scan of everything. */
export interface Plan {
  readonly index?: Index;
  /** How many leading fields of the index are bounded by the filter. */
  readonly bounded: number;
  readonly ranges: readonly Range[];
  readonly isBackwards: boolean;
  readonly needsSort: boolean;
}

type Range = readonly [from: Key, to: Key];
type Sort = readonly (readonly [path: string, isDescending: boolean])[];

/** What a filter says about one field, if an index can use it. */
interface Bounds {
  readonly points?: readonly unknown[];
  readonly from?: Bound;
  readonly to?: Bound;
}

/** A bound just before the keys that start with `key`, or just after them. */
interface Bound {
  readonly key: Key;
  readonly isAfter: boolean;
}

const placeOf = ({ key, isAfter }: Bound): Key => (isAfter ? `${key}\xff` : key);
const reversed = ({ key, isAfter }: Bound): Bound => ({ key: inverted(key), isAfter: !isAfter });

const MAX_POINTS = 10_000;

const boundsOf = (value: unknown): Bounds => {
  const operators = operatorsOf(value);
  if (operators === undefined) return typeOf(value) === 'BSONRegExp' ? {} : { points: [value] };
  return operators.reduce<Bounds>((known, [name, operand]) => narrowed(known, name, operand), {});
};

const narrowed = (known: Bounds, name: string, operand: unknown): Bounds => {
  if (name === '$eq') return { ...known, points: [operand] };
  if (name === '$in') return { ...known, points: operand as readonly unknown[] };
  const key = keyOf(operand);
  const type = key.slice(0, 1);
  const from =
    name === '$gt' || name === '$gte' ? { key, isAfter: name === '$gt' } : { key: type, isAfter: false };
  const to =
    name === '$lt' || name === '$lte' ? { key, isAfter: name === '$lte' } : { key: type, isAfter: true };
  if (!['$gt', '$gte', '$lt', '$lte'].includes(name)) return known;
  return {
    ...known,
    from: known.from === undefined || placeOf(known.from) < placeOf(from) ? from : known.from,
    to: known.to === undefined || placeOf(known.to) > placeOf(to) ? to : known.to,
  };
};

const boundsByField = (filter: Document, into = new Map<string, Bounds>()): Map<string, Bounds> => {
  for (const [name, value] of Object.entries(filter)) {
    if (name === '$and') for (const one of value as Document[]) boundsByField(one, into);
    else if (!name.startsWith('$')) into.set(name, { ...boundsOf(value), ...into.get(name) });
  }
  return into;
};

const withPoints = (
  prefixes: readonly Key[],
  points: readonly unknown[],
  isDescending: boolean,
): readonly Key[] => {
  const keys = [...new Set(points.map(keyOf))].map((key) => (isDescending ? inverted(key) : key)).toSorted();
  return prefixes.flatMap((prefix) => keys.map((key) => prefix + key));
};

/** A range of one field, after equal values of the fields before it. */
const lastRange = (
  prefixes: readonly Key[],
  { from, to }: Bounds,
  isDescending: boolean,
): readonly Range[] => {
  if (from === undefined || to === undefined) return prefixes.map((prefix) => [prefix, `${prefix}\xff`]);
  const [low, high] = isDescending ? [reversed(to), reversed(from)] : [from, to];
  return prefixes.map((prefix) => [prefix + placeOf(low), prefix + placeOf(high)]);
};

const sortFit = (index: Index, equal: number, sort: Sort): 'none' | 'forwards' | 'backwards' => {
  const constant = new Set(index.fields.slice(0, equal).map(([path]) => path));
  const wanted = sort.filter(([path]) => !constant.has(path));
  if (wanted.length === 0) return 'forwards';
  const given = index.fields.filter(([path]) => !constant.has(path));
  if (wanted.some(([path], at) => given[at]?.[0] !== path)) return 'none';
  if (wanted.every(([, down], at) => given[at]![1] === down)) return 'forwards';
  return wanted.every(([, down], at) => given[at]![1] !== down) ? 'backwards' : 'none';
};

const planWith = (index: Index, bounds: ReadonlyMap<string, Bounds>, sort: Sort): Plan => {
  let prefixes: readonly Key[] = [''];
  let equal = 0;
  let range: Bounds = {};
  for (const [path, isDescending] of index.fields) {
    const bound = bounds.get(path);
    if (bound?.points === undefined || prefixes.length * bound.points.length > MAX_POINTS) {
      range = bound ?? {};
      break;
    }
    prefixes = withPoints(prefixes, bound.points, isDescending);
    equal += 1;
  }
  const next = index.fields[equal];
  const hasRange = next !== undefined && range.from !== undefined;
  const fit = sortFit(index, prefixes.length > 1 ? 0 : equal, sort);
  return {
    index,
    bounded: equal + (hasRange ? 1 : 0),
    ranges: lastRange(prefixes, hasRange ? range : {}, next?.[1] ?? false),
    isBackwards: fit === 'backwards',
    needsSort: sort.length > 0 && fit === 'none',
  };
};

const isBetter = (one: Plan, other: Plan): boolean =>
  one.bounded === other.bounded ? !one.needsSort && other.needsSort : one.bounded > other.bounded;

export const sortOf = (sort: unknown): Sort =>
  isDocument(sort) ? Object.entries(sort).map(([path, direction]) => [path, Number(direction) < 0]) : [];

export const planOf = (collection: Collection | undefined, filter: Document, sort: Sort): Plan => {
  const all: Plan = { bounded: 0, ranges: [], isBackwards: false, needsSort: sort.length > 0 };
  const bounds = boundsByField(filter);
  return [...(collection?.indexes.values() ?? [])]
    .filter(({ isMultikey }) => !isMultikey)
    .map((index) => planWith(index, bounds, sort))
    .filter((plan) => plan.bounded > 0 || (sort.length > 0 && !plan.needsSort))
    .reduce((best, plan) => (isBetter(plan, best) ? plan : best), all);
};

export function* candidatesOf(collection: Collection | undefined, plan: Plan): IterableIterator<Stored> {
  if (collection === undefined) return;
  if (plan.index === undefined) {
    yield* collection.all();
    return;
  }
  const { entries } = plan.index;
  for (const [from, to] of plan.isBackwards ? plan.ranges.toReversed() : plan.ranges)
    yield* plan.isBackwards ? entries.backwards(from, to) : entries.between(from, to);
}

/** Arrays sort by their smallest element, or backwards by their largest. */
const sortKey = (document: Document, path: string, isDescending: boolean): Key => {
  const values = valuesAt(document, path).flatMap((value) =>
    Array.isArray(value) && value.length > 0 ? value : [value],
  );
  const keys = (values.length === 0 ? [null] : values).map(keyOf).toSorted();
  return isDescending ? inverted(keys.at(-1)!) : keys[0]!;
};

export const sorted = (found: readonly Stored[], sort: Sort): readonly Stored[] =>
  found
    .map((stored) => ({
      stored,
      key: sort.map(([path, down]) => sortKey(stored.document, path, down)).join(''),
    }))
    .toSorted((left, right) => (left.key < right.key ? -1 : left.key > right.key ? 1 : 0))
    .map(({ stored }) => stored);

/** The plan as `explain` reports it. */
export const explained = (plan: Plan, filter: Document): Document => {
  const isById =
    plan.index?.spec.name === '_id_' && Object.keys(filter).length === 1 && plan.ranges.length === 1;
  if (isById && operatorsOf(filter['_id']) === undefined) return { stage: 'IDHACK' };
  if (plan.index === undefined) return sortStage(plan, { stage: 'COLLSCAN', direction: 'forward' });
  const scan = {
    stage: 'IXSCAN',
    keyPattern: plan.index.spec.key,
    indexName: plan.index.spec.name,
    isUnique: plan.index.spec.unique,
    direction: plan.isBackwards ? 'backward' : 'forward',
  };
  return sortStage(plan, { stage: 'FETCH', inputStage: scan });
};

const sortStage = ({ needsSort }: Plan, inputStage: Document): Document =>
  needsSort ? { stage: 'SORT', inputStage } : inputStage;
