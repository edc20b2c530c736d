/** Lower case, as ids are stored and compared. */
export const UUID_PATTERN = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

const UUID = new RegExp(`^${UUID_PATTERN}$`);

export const isUuid = (value: unknown): value is string => typeof value === 'string' && UUID.test(value);

/** Converts to the stored lower case. Undefined if it is not a UUID. */
export const uuidFrom = (value: unknown): string | undefined => {
  const lower = typeof value === 'string' ? value.toLowerCase() : undefined;
  return isUuid(lower) ? lower : undefined;
};
