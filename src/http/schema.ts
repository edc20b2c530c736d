/** JSON Schema (2020-12), as far as we use it. A `title` makes it a named schema of the OpenAPI document. */
export type Schema = Readonly<Record<string, unknown>>;

export const text: Schema = { type: 'string' };
export const bytes: Schema = { type: 'string', format: 'binary' };
export const uuid: Schema = { type: 'string', format: 'uuid' };
export const count: Schema = { type: 'integer', format: 'int64', minimum: 0 };
export const positive: Schema = { type: 'integer', format: 'int64', minimum: 1 };
export const flag: Schema = { type: 'string', enum: ['true', 'false'] };

/** Every date in a response: ISO 8601 in UTC, to the millisecond, which the tests check. */
export const moment: Schema = { type: 'string', format: 'date-time' };

export const oneOf = (values: readonly string[]): Schema => ({ type: 'string', enum: values });
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

/** What a response with this schema has of a document, in the same order. */
export const membersOf = <T extends object>({ properties }: Schema, document: T): Partial<T> => {
  const names = Object.keys(properties as object) as (keyof T)[];
  return Object.fromEntries(names.map((name) => [name, document[name]])) as Partial<T>;
};

const SAMPLES: Readonly<Record<string, unknown>> = {
  uuid: '11111111-2222-4333-8444-555555555555',
  'date-time': '2026-01-31T12:00:00.000Z',
  date: '2026-01-31',
  boolean: true,
  integer: 1,
  string: 'text',
};

/** A value that fits a schema, made of the examples of its parts. Optional members without an example are left out. */
export const sampleOf = (schema: Schema): unknown => {
  const { examples, enum: values, type, format, items, properties, additionalProperties, required } = schema;
  const [first] = [examples ?? values ?? []].flat(1);
  if (first !== undefined) return first;
  if (type === 'array') return [sampleOf(items as Schema)];
  if (properties !== undefined) {
    const members = Object.entries(properties as Readonly<Record<string, Schema>>);
    const shown = members.filter(([name, { examples: own }]) =>
      own === undefined ? (required as readonly string[]).includes(name) : true,
    );
    return Object.fromEntries(shown.map(([name, member]) => [name, sampleOf(member)]));
  }
  if (type === 'object') return { token: sampleOf(additionalProperties as Schema) };
  return SAMPLES[String(format)] ?? SAMPLES[String(type)];
};
