import type { Document } from 'mongodb';

/**
 * BSON values in MongoDB's comparison order. The key of a value is a text of bytes (0 to 255 per character): keys
 * compare as the values do, equal values have equal keys, and no key is a prefix of another, so keys can be
 * concatenated.
 */
export type Key = string;

/** "Comparison/Sort Order" in MongoDB's documentation. Undefined and missing values count as null. */
const RANKS: Readonly<Record<string, number>> = {
  MinKey: 1,
  null: 2,
  number: 3,
  string: 4,
  object: 5,
  array: 6,
  Binary: 7,
  ObjectId: 8,
  boolean: 9,
  date: 10,
  Timestamp: 11,
  BSONRegExp: 12,
  MaxKey: 13,
};

const NUMBERS = new Set(['Int32', 'Double', 'Long', 'Decimal128']);

type Tagged = { readonly _bsontype?: string };

export const typeOf = (value: unknown): string => {
  if (value === null || value === undefined) return 'null';
  if (typeof value !== 'object') return typeof value === 'bigint' ? 'number' : typeof value;
  if (Array.isArray(value)) return 'array';
  if (Object.prototype.toString.call(value) === '[object Date]') return 'date';
  if (value instanceof Uint8Array) return 'Binary';
  const tag = (value as Tagged)._bsontype;
  if (tag === undefined) return 'object';
  return NUMBERS.has(tag) ? 'number' : tag;
};

export const isDocument = (value: unknown): value is Document => typeOf(value) === 'object';

const rankOf = (value: unknown): string => {
  const rank = RANKS[typeOf(value)];
  if (rank === undefined) throw new Error(`This server stores no values of type ${typeOf(value)}.`);
  return String.fromCharCode(rank);
};

const scratch = new DataView(new ArrayBuffer(8));

const bytesOf = (high: number, low: number): string =>
  String.fromCharCode(
    high >>> 24,
    (high >>> 16) & 255,
    (high >>> 8) & 255,
    high & 255,
    low >>> 24,
    (low >>> 16) & 255,
    (low >>> 8) & 255,
    low & 255,
  );

const doubleKey = (value: number): Key => {
  if (Number.isNaN(value)) return '\0'.repeat(8);
  scratch.setFloat64(0, value === 0 ? 0 : value);
  const [high, low] = [scratch.getUint32(0), scratch.getUint32(4)];
  return value < 0 ? bytesOf(~high >>> 0, ~low >>> 0) : bytesOf((high ^ 0x80000000) >>> 0, low);
};

/**
 * A 64-bit integer is stored as the nearest double and the remainder, so that integers and doubles compare with each
 * other.
 */
const numberKey = (value: unknown): Key => {
  const isLong = (value as Tagged)._bsontype === 'Long' || typeof value === 'bigint';
  const number = Number(value);
  const rest = isLong ? Number(BigInt(String(value)) - BigInt(number)) : 0;
  return doubleKey(number) + String.fromCharCode((rest + 0x8000) >> 8, (rest + 0x8000) & 255);
};

const END = '\0\0';
const isPlain = (text: string): boolean => /^[ -~]*$/.test(text);

const bytesKey = (bytes: string): Key => bytes.replaceAll('\0', '\0\xff') + END;

const textKey = (text: string): Key =>
  isPlain(text) ? text + END : bytesKey(Buffer.from(text, 'utf8').toString('latin1'));

const binaryKey = (value: unknown): Key => {
  const isRaw = value instanceof Uint8Array;
  const { buffer, sub_type: subType } = isRaw
    ? { buffer: value, sub_type: 0 }
    : (value as { buffer: Uint8Array; sub_type: number });
  return bytesOf(buffer.length, 0) + String.fromCharCode(subType) + Buffer.from(buffer).toString('latin1');
};

const integerKey = (value: bigint): Key =>
  bytesOf(Number((value >> 32n) & 0xffffffffn), Number(value & 0xffffffffn));

const documentKey = (document: Document): Key =>
  Object.entries(document)
    .map(([name, value]) => rankOf(value) + textKey(name) + payloadOf(value))
    .join('') + '\0';

const payloadOf = (value: unknown): Key => {
  switch (typeOf(value)) {
    case 'number':
      return numberKey(value);
    case 'string':
      return textKey(value as string);
    case 'object':
      return documentKey(value as Document);
    case 'array':
      return (value as unknown[]).map(keyOf).join('') + '\0';
    case 'Binary':
      return binaryKey(value);
    case 'ObjectId':
      return Buffer.from((value as { id: Uint8Array }).id).toString('latin1');
    case 'boolean':
      return value === true ? '\x01' : '\0';
    case 'date':
      return integerKey(BigInt((value as Date).getTime()) + (1n << 63n));
    case 'Timestamp':
      return integerKey(BigInt(String(value)));
    case 'BSONRegExp':
      return textKey((value as { pattern: string }).pattern);
    default:
      return '';
  }
};

export const keyOf = (value: unknown): Key => rankOf(value) + payloadOf(value);

/** The keys of all values of the same type are between these. Comparisons match only values of their own type. */
export const typeRange = (value: unknown): readonly [from: Key, to: Key] => {
  const rank = rankOf(value);
  return [rank, `${rank}\xff`];
};

/** For a descending field of an index: the reverse order. */
export const inverted = (key: Key): Key => {
  let result = '';
  for (let at = 0; at < key.length; at++) result += String.fromCharCode(255 - key.charCodeAt(at));
  return result;
};

export const isSame = (left: unknown, right: unknown): boolean =>
  typeof left === 'string' && typeof right === 'string' ? left === right : keyOf(left) === keyOf(right);

/** The values at a dotted path, including those in arrays. Empty if there are none. */
export const valuesAt = (document: unknown, path: string): readonly unknown[] => {
  if (!path.includes('.')) {
    if (!isDocument(document) || !Object.hasOwn(document, path)) return [];
    return [document[path]];
  }
  return valuesOnWay(document, path.split('.'));
};

const valuesOnWay = (from: unknown, way: readonly string[]): readonly unknown[] => {
  const [name, ...rest] = way;
  if (name === undefined) return [from];
  if (Array.isArray(from)) {
    const indexed =
      /^\d+$/.test(name) && Number(name) < from.length ? valuesOnWay(from[Number(name)], rest) : [];
    return [...indexed, ...from.filter(isDocument).flatMap((document) => valuesOnWay(document, way))];
  }
  return isDocument(from) && Object.hasOwn(from, name) ? valuesOnWay(from[name], rest) : [];
};
