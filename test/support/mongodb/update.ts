import type { Document } from 'mongodb';
import { BSON } from 'mongodb';
import { failure } from './failure';
import { operatorsOf } from './filter';
import { isDocument, isSame, keyOf, typeOf } from './values';

/** The result of an update of a document. Documents are never modified in place. */
export type Change = (document: Document, isInsert: boolean) => Document;

const setAt = (document: Document, way: readonly string[], value: unknown): Document => {
  const [name, ...rest] = way as [string, ...string[]];
  if (rest.length === 0) return withMember(document, name, value);
  const inner = document[name];
  if (inner !== undefined && !isDocument(inner))
    throw failure(28, `Cannot create field '${rest[0]}' in element {${name}: …}`);
  return withMember(document, name, setAt(inner ?? {}, rest, value));
};

const withMember = (document: Document, name: string, value: unknown): Document => {
  const copy = { ...document };
  Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
  return copy;
};

const unsetAt = (document: Document, way: readonly string[]): Document => {
  const [name, ...rest] = way as [string, ...string[]];
  if (!Object.hasOwn(document, name)) return document;
  if (rest.length > 0) {
    const inner: unknown = document[name];
    return isDocument(inner) ? withMember(document, name, unsetAt(inner, rest)) : document;
  }
  return Object.fromEntries(Object.entries(document).filter(([one]) => one !== name));
};

const valueAt = (document: Document, way: readonly string[]): unknown =>
  way.reduce<unknown>(
    (at, name) => (isDocument(at) && Object.hasOwn(at, name) ? at[name] : undefined),
    document,
  );

const INT32 = 2 ** 31;
const isTagged = (value: unknown, tag: string): boolean =>
  (value as { _bsontype?: string })._bsontype === tag;

const sum = (left: unknown, right: unknown): unknown => {
  if (typeOf(left) !== 'number' || typeOf(right) !== 'number')
    throw failure(14, 'Cannot apply $inc to a value of non-numeric type.');
  const total = Number(left) + Number(right);
  if (isTagged(left, 'Double') || isTagged(right, 'Double')) return new BSON.Double(total);
  if (isTagged(left, 'Long') || isTagged(right, 'Long') || Math.abs(total) >= INT32)
    return BSON.Long.fromString(String(BigInt(String(left)) + BigInt(String(right))));
  return new BSON.Int32(total);
};

type Operator = (now: unknown, operand: unknown) => unknown;
const OPERATORS: Readonly<Record<string, Operator>> = {
  $set: (_, operand) => operand,
  $inc: (now, operand) => (now === undefined ? operand : sum(now, operand)),
  $max: (now, operand) => (now !== undefined && keyOf(now) >= keyOf(operand) ? now : operand),
  $min: (now, operand) => (now !== undefined && keyOf(now) <= keyOf(operand) ? now : operand),
};

const applied = (document: Document, name: string, members: Document, isInsert: boolean): Document => {
  if (name === '$setOnInsert') return isInsert ? applied(document, '$set', members, isInsert) : document;
  const paths = Object.keys(members);
  if (name === '$unset') return paths.reduce((now, path) => unsetAt(now, path.split('.')), document);
  const operator = OPERATORS[name];
  if (operator === undefined) throw failure(9, `Unknown modifier: ${name}.`);
  return paths.reduce((now, path) => {
    const way = path.split('.');
    return setAt(now, way, operator(valueAt(now, way), members[path]));
  }, document);
};

const checkPaths = (update: Document): void => {
  const seen = new Set<string>();
  for (const path of Object.values(update).flatMap((members) => Object.keys(members as Document))) {
    const isInside = [...seen].some((other) => other.startsWith(`${path}.`) || path.startsWith(`${other}.`));
    if (seen.has(path) || isInside)
      throw failure(40, `Updating the path '${path}' would create a conflict at '${path}'`);
    seen.add(path);
  }
};

const modifiers = (update: Document): Change => {
  for (const [name, members] of Object.entries(update)) {
    if (!name.startsWith('$')) throw failure(9, `Unknown modifier: ${name}.`);
    if (!isDocument(members)) throw failure(9, `Modifiers operate on fields but ${name} has none.`);
  }
  checkPaths(update);
  return (document, isInsert) =>
    Object.entries(update).reduce(
      (now, [name, members]) => applied(now, name, members as Document, isInsert),
      document,
    );
};

const replacement = (update: Document): Change => {
  const dollar = Object.keys(update).find((name) => name.startsWith('$'));
  if (dollar !== undefined)
    throw failure(52, `The dollar ($) prefixed field '${dollar}' is not allowed in a replacement.`);
  return (document) => (document['_id'] === undefined ? update : { _id: document['_id'], ...update });
};

/** Refuses what is not supported: pipelines, array filters, collations. */
export const changeOf = (update: unknown): Change => {
  if (!isDocument(update)) throw failure(9, 'This server takes no updates with an aggregation pipeline.');
  const change = operatorsOf(update) === undefined ? replacement(update) : modifiers(update);
  return (document, isInsert) => {
    const after = change(document, isInsert);
    if (document['_id'] !== undefined && !isSame(after['_id'], document['_id']))
      throw failure(66, "Performing an update on the path '_id' would modify the immutable field '_id'");
    return after;
  };
};

export const isReplacement = (update: unknown): boolean =>
  isDocument(update) && operatorsOf(update) === undefined;

/** What an upsert starts with: the values that the filter compares for equality. */
export const seedOf = (filter: Document): Document =>
  Object.entries(filter).reduce<Document>((seed, [name, value]) => {
    if (name === '$and') return Object.assign(seed, ...(value as Document[]).map(seedOf)) as Document;
    if (name.startsWith('$')) return seed;
    const operators = operatorsOf(value);
    if (operators === undefined) return setAt(seed, name.split('.'), value);
    const equal = operators.find(([operator]) => operator === '$eq');
    return equal === undefined ? seed : setAt(seed, name.split('.'), equal[1]);
  }, {});
