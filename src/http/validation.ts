import Ajv, { type ErrorObject } from 'ajv';
import { parseBound, nameFault, uuidFrom } from '../domain/texts';
import { fault, suggestionFor, type Fault } from '../fault';
import type { Schema } from './schema';

/** What is wrong with each field, by its name as sent. */
type FieldErrors = Readonly<Record<string, readonly string[]>>;

export const invalid = (errors: FieldErrors): Fault => {
  const sentencesOf = ([field, texts]: readonly [string, readonly string[]]) =>
    texts.map((text) => `${field} ${text}`);
  const all = Object.entries(errors).flatMap(sentencesOf).join('; ');
  return fault('validation_failed', all.endsWith('?') ? all : `${all}.`, { errors });
};

/** In a query an unencoded `+` arrives as a space; in a date that can only have been the sign of a UTC offset. */
export const readDate = (text: string): string | undefined => parseBound(text.replace(' ', '+'));

/** The formats that schemas may name, with the error message of each. */
export const formats = {
  'date-time': {
    isMet: (text: string) => readDate(text) !== undefined,
    rule: 'must be an ISO 8601 date or date-time, for example 2026-01-31T12:00:00Z',
  },
  uuid: {
    isMet: (text: string) => uuidFrom(text) !== undefined,
    rule: 'must be a UUID, for example 11111111-2222-4333-8444-555555555555',
  },
};

/** The tests check that the schemas are valid. Unoptimized code compiles faster and runs as fast. */
const unchecked = { meta: false, validateSchema: false, code: { optimize: false } };
const ajv = new Ajv({ ...unchecked, allErrors: true, strictTypes: false, verbose: true });
const isValidName = (_: unknown, name: string): boolean => nameFault(name) === undefined;
ajv.addKeyword({ keyword: 'validName', type: 'string', validate: isValidName });
for (const [name, { isMet }] of Object.entries(formats)) ajv.addFormat(name, isMet);

const fieldOf = (error: ErrorObject): string => {
  const path = error.instancePath.split('/').slice(1);
  const { missingProperty, additionalProperty } = error.params as Record<string, string | undefined>;
  const field = [...path, missingProperty ?? additionalProperty ?? []].flat().join('.');
  return field === '' ? 'body' : field;
};

const withArticle = (type: string): string => {
  if (type === 'null') return 'null';
  return type === 'object' ? 'a JSON object' : `a ${type}`;
};

/** Of more values than these, the nearest is named. */
export const FEW = 5;

/** Those that may be set: others are only tolerated. */
const settableOf = ({ properties }: Schema): readonly string[] =>
  Object.entries(properties as Readonly<Record<string, Schema>>)
    .filter(([, { readOnly }]) => readOnly !== true)
    .map(([name]) => name);

const textOf = (error: ErrorObject): string => {
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties': {
      const known = settableOf(error.parentSchema as Schema);
      return `is not a known member: ${suggestionFor(String(error.params['additionalProperty']), known)}`;
    }
    case 'maxItems':
      return 'must be empty: access rules are not supported';
    case 'enum': {
      const known = error.params['allowedValues'] as string[];
      if (known.length > FEW) return `is not known: ${suggestionFor(String(error.data), known)}`;
      return `must be ${known.map((value) => `"${value}"`).join(' or ')}`;
    }
    case 'validName':
      return nameFault(error.data as string) ?? 'is not a name';
    case 'format':
      return formats[error.params['format'] as keyof typeof formats].rule;
    case 'type':
      return `must be ${[error.params['type']].flat().map(withArticle).join(' or ')}`;
    default:
      return error.message ?? 'is not valid';
  }
};

/** Returns a parsed body with its type, or throws `validation_failed`. */
export interface BodyCheck<Body> {
  (parsed: unknown): Body;
  readonly schema: Schema;
  /** For the OpenAPI document. */
  readonly example: unknown;
  /** No member is required: a missing body counts as an empty object. */
  readonly isOptional: boolean;
}

/** Further ones are not reported. */
export const MAX_ERRORS = 20;

const READ_ONLY: Schema = { readOnly: true, description: 'Not to be set. May be sent back, and is ignored.' };

/** Refuses unknown members: a misspelt one that is silently ignored misleads. What responses show may be sent back. */
const strict = (schema: Schema, shownAs: Schema): Schema => {
  const shown = Object.keys(shownAs['properties'] ?? {});
  const tolerated = Object.fromEntries(shown.map((name) => [name, READ_ONLY]));
  const properties = { ...tolerated, ...(schema['properties'] as object) };
  return { ...schema, properties, additionalProperties: false };
};

/**
 * Compiles a JSON Schema into a check whose errors name the fields as sent. `shownAs` is the schema of the same resource
 * in responses.
 */
export const bodyCheck = <Body>(declared: Schema, shownAs: Schema, example: Body): BodyCheck<Body> => {
  const schema = strict(declared, shownAs);
  const validate = ajv.compile<Body>(schema);
  const isOptional = declared['required'] === undefined;
  const check = (sent: unknown): Body => {
    const parsed = isOptional ? (sent ?? {}) : sent;
    if (validate(parsed)) return parsed;
    const errors = new Map<string, string[]>();
    for (const error of validate.errors?.slice(0, MAX_ERRORS) ?? []) {
      const field = fieldOf(error);
      errors.set(field, [...(errors.get(field) ?? []), textOf(error)]);
    }
    throw invalid(Object.fromEntries(errors));
  };
  return Object.assign(check, { schema, example, isOptional });
};
