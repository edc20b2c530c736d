import { hash } from 'node:crypto';

/** Lower case, as ids are stored and compared. */
export const UUID_PATTERN = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

const UUID = new RegExp(`^${UUID_PATTERN}$`);

export const isUuid = (value: unknown): value is string => typeof value === 'string' && UUID.test(value);

/** Converts to the stored lower case. Undefined if it is not a UUID. */
export const uuidFrom = (value: unknown): string | undefined => {
  const lower = typeof value === 'string' ? value.toLowerCase() : undefined;
  return isUuid(lower) ? lower : undefined;
};

/** The same UUID for the same text, in any process: version 8 of RFC 9562. */
export const uuidOfText = (text: string): string => {
  const hex = hash('sha256', text);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

/** A JSON object: neither an array nor binary data. */
export const isJsonObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);

/** Undefined if the text is not JSON. */
export const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Whether no text in it, names of members included, has half of a character. */
export const isWellFormed = (value: unknown): boolean => {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([name, member]) => name.isWellFormed() && isWellFormed(member));
};

/** Groups are ordered by their first item, and keep the order of the items. */
export const groupedBy = <T>(
  items: Iterable<T>,
  keyOf: (item: T) => string,
): ReadonlyMap<string, readonly [T, ...T[]]> => {
  const groups = new Map<string, [T, ...T[]]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
};
