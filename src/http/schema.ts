/** JSON Schema (2020-12), as far as we use it. A `title` makes it a named schema of the published description. */
export type Schema = Readonly<Record<string, unknown>>;

export const text: Schema = { type: 'string' };
export const uuid: Schema = { type: 'string', format: 'uuid' };
export const count: Schema = { type: 'integer', minimum: 0 };
export const flag: Schema = { enum: ['true', 'false'] };

/** How every date leaves: ISO 8601 in UTC, to the millisecond. */
export const moment: Schema = {
  type: 'string',
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z$',
};

export const listOf = (items: Schema): Schema => ({ type: 'array', items });

/** An object with exactly these members; the optional ones are left out when there is no value. */
export const record = (
  title: string,
  properties: Readonly<Record<string, Schema>>,
  optional: readonly string[] = [],
): Schema => ({
  title,
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});
