import type { Document } from 'mongodb';
import { failure } from './failure';
import { isDocument, isSame, keyOf, typeOf, typeRange, valuesAt } from './values';

export type Predicate = (document: Document) => boolean;
type Found = readonly unknown[];
type Condition = (found: Found) => boolean;

/** A condition on an array holds if it holds for the array or for one of its elements. */
const candidates = (found: Found): Found =>
  found.some(Array.isArray)
    ? found.flatMap((value) => (Array.isArray(value) ? [value, ...value] : [value]))
    : found;

const equals = (expected: unknown): Condition => {
  if (typeOf(expected) === 'BSONRegExp') return textLike(expected as { pattern: string; options: string });
  const isNull = typeOf(expected) === 'null';
  return (found) => {
    if (isNull && found.length === 0) return true;
    return candidates(found).some((value) => isSame(value, expected));
  };
};

const textLike = ({ pattern, options }: { pattern: string; options: string }): Condition => {
  const expression = new RegExp(pattern, options);
  return (found) => candidates(found).some((value) => typeof value === 'string' && expression.test(value));
};

const compares = (expected: unknown, holds: (left: string, right: string) => boolean): Condition => {
  const [from, to] = typeRange(expected);
  const right = keyOf(expected);
  return (found) =>
    candidates(found).some((value) => {
      const left = keyOf(value);
      return left >= from && left < to && holds(left, right);
    });
};

const listOf = (operator: string, value: unknown): readonly unknown[] => {
  if (!Array.isArray(value)) throw failure(2, `${operator} needs an array`);
  return value;
};

const isOneOf = (expected: readonly unknown[]): Condition => {
  const hasNull = expected.some((value) => typeOf(value) === 'null');
  const keys = new Set(expected.map(keyOf));
  return (found) =>
    (hasNull && found.length === 0) || candidates(found).some((value) => keys.has(keyOf(value)));
};

const truthOf = (value: unknown): boolean =>
  typeOf(value) === 'number' ? Number(value) !== 0 : value !== false && typeOf(value) !== 'null';

const OPERATORS: Readonly<Record<string, (value: unknown) => Condition>> = {
  $eq: equals,
  $ne: (value) => {
    const same = equals(value);
    return (found) => !same(found);
  },
  $lt: (value) => compares(value, (left, right) => left < right),
  $lte: (value) => compares(value, (left, right) => left <= right),
  $gt: (value) => compares(value, (left, right) => left > right),
  $gte: (value) => compares(value, (left, right) => left >= right),
  $in: (value) => isOneOf(listOf('$in', value)),
  $nin: (value) => {
    const isIn = isOneOf(listOf('$nin', value));
    return (found) => !isIn(found);
  },
  $exists: (value) => {
    const isWanted = truthOf(value);
    return (found) => found.length > 0 === isWanted;
  },
  $not: (value) => {
    const condition = conditionOf(value);
    return (found) => !condition(found);
  },
};

/** The operators of one field, or undefined if it is compared with a value. */
export const operatorsOf = (value: unknown): readonly (readonly [string, unknown])[] | undefined => {
  if (!isDocument(value)) return undefined;
  const entries = Object.entries(value);
  return entries[0]?.[0].startsWith('$') === true ? entries : undefined;
};

const conditionOf = (value: unknown): Condition => {
  const operators = operatorsOf(value);
  if (operators === undefined) return equals(value);
  const conditions = operators.map(([name, operand]) => {
    const operator = OPERATORS[name];
    if (operator === undefined) throw failure(2, `unknown operator: ${name}`);
    return operator(operand);
  });
  return (found) => conditions.every((holds) => holds(found));
};

const clauses = (name: string, value: unknown): readonly Predicate[] => {
  const list = listOf(name, value);
  if (list.length === 0) throw failure(2, `${name} must be a nonempty array`);
  return list.map((clause) => filterOf(clause as Document));
};

const clause = (name: string, value: unknown): Predicate => {
  if (name === '$comment') return () => true;
  if (name === '$and') {
    const all = clauses(name, value);
    return (document) => all.every((holds) => holds(document));
  }
  if (name === '$or') {
    const some = clauses(name, value);
    return (document) => some.some((holds) => holds(document));
  }
  if (name === '$nor') {
    const none = clauses(name, value);
    return (document) => none.every((holds) => !holds(document));
  }
  if (name.startsWith('$')) throw failure(2, `unknown top level operator: ${name}`);
  const holds = conditionOf(value);
  return (document) => holds(valuesAt(document, name));
};

export const filterOf = (filter: Document): Predicate => {
  if (!isDocument(filter)) throw failure(14, 'A filter must be an object');
  const all = Object.entries(filter).map(([name, value]) => clause(name, value));
  return (document) => all.every((holds) => holds(document));
};
