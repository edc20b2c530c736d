/** JSON Schema (2020-12), as far as we use it. A `title` makes it a named schema of the OpenAPI document. */
export type Schema = Readonly<Record<string, unknown>>;

export const text: Schema = { type: 'string' };
export const bytes: Schema = { type: 'string', format: 'binary' };
export const uuid: Schema = { type: 'string', format: 'uuid' };
export const count: Schema = { type: 'integer', format: 'int64', minimum: 0 };
export const flag: Schema = { type: 'string', enum: ['true', 'false'] };

/** Every date in a response: ISO 8601 in UTC, to the millisecond, which the tests check. */
export const moment: Schema = { type: 'string', format: 'date-time' };

export const listOf = (items: Schema): Schema => ({ type: 'array', items });

/** Adds a description, and possibly examples. */
export const described = (schema: Schema, description: string, ...examples: readonly unknown[]): Schema => ({
  ...schema,
  description,
  ...(examples.length === 0 ? {} : { examples }),
});

/**
 * An object with these members; optional ones are omitted if there is no value. Later releases may add members, so
 * clients must accept unknown ones; only the tests refuse them.
 */
export const record = (
  title: string,
  properties: Readonly<Record<string, Schema>>,
  optional: readonly string[] = [],
): Schema => ({
  title,
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});
