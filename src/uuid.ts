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
