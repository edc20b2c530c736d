import { MAX_NAME_LENGTH } from '../../domain/names';
import type { Schema } from '../routes/schema';

/** What our own keyword `aName` means in words of JSON Schema that everybody knows. */
const publishedName: Schema = {
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  pattern: '\\S',
  description: `1 to ${MAX_NAME_LENGTH} UTF-16 units (a character outside the Basic Multilingual Plane counts as two, unlike \`maxLength\` here), not blank, without a lone surrogate or an API key.`,
  examples: ['Acme'],
};

export interface NamedSchemas {
  /** The schema as it is published: what has a title is among the named ones and is referred to. */
  published(schema: Schema): Schema;
  named(): Readonly<Record<string, Schema>>;
}

export const namedSchemas = (): NamedSchemas => {
  const found = new Map<string, Schema>();

  const within = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(within);
    return typeof value === 'object' && value !== null ? published(value as Schema) : value;
  };

  const published = (schema: Schema): Schema => {
    const { title, aName, ...rest } = schema;
    const inside = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, within(value)]));
    const whole = aName === true ? { ...inside, ...publishedName } : inside;
    if (typeof title !== 'string') return title === undefined ? whole : { ...whole, title: within(title) };
    found.set(title, whole);
    return { $ref: `#/components/schemas/${title}` };
  };

  return { published, named: () => Object.fromEntries(found) };
};
