import { MAX_NAME_LENGTH } from '../../domain/names';
import type { Schema } from '../schema';

/** Our own keyword `validName`, expressed in standard JSON Schema. */
const publishedName = ({ description }: Schema): Schema => ({
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  pattern: '\\S',
  description: [
    ...(typeof description === 'string' ? [description] : []),
    `1 to ${MAX_NAME_LENGTH} UTF-16 units (a character outside the Basic Multilingual Plane counts as two, unlike \`maxLength\` here), not blank, without a lone surrogate or an API key.`,
  ].join(' '),
  examples: ['Acme'],
});

export const namedSchemas = () => {
  const collected = new Map<string, Schema>();

  const publishedWithin = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(publishedWithin);
    return typeof value === 'object' && value !== null ? published(value as Schema) : value;
  };

  /**
   * The schema as published: schemas with a title become named ones, and are referenced. Their description says what
   * they are for in that place, and stays there.
   */
  const published = (schema: Schema): Schema => {
    const { title, validName, ...rest } = schema;
    const members = Object.fromEntries(
      Object.entries(rest).map(([name, value]) => [name, publishedWithin(value)]),
    );
    const full = validName === true ? { ...members, ...publishedName(members) } : members;
    if (typeof title !== 'string')
      return title === undefined ? full : { ...full, title: publishedWithin(title) };
    const { description, ...own } = full;
    collected.set(title, own);
    return { $ref: `#/components/schemas/${title}`, ...(description === undefined ? {} : { description }) };
  };

  return { published, named: () => Object.fromEntries(collected) };
};

export type NamedSchemas = ReturnType<typeof namedSchemas>;
