import Ajv, { type ErrorObject } from 'ajv';
import { parseBound } from '../../domain/moment';
import { nameFault } from '../../domain/names';
import { fault, type Fault } from '../../fault';
import { suggestionFor } from '../../nearest';
import { uuidFrom } from '../../uuid';
import type { Schema } from '../routes/schema';

/** What is wrong with each field, by its name as sent. */
type FieldErrors = Readonly<Record<string, readonly string[]>>;

export const invalid = (errors: FieldErrors): Fault => {
  const sentences = Object.entries(errors).flatMap(([field, texts]) =>
    texts.map((text) => `${field} ${text}`),
  );
  const all = sentences.join('; ');
  return fault('validation_failed', all.endsWith('?') ? all : `${all}.`, { errors });
};

/** In a query an unencoded `+` arrives as a space; in a date that can only have been the sign of a UTC offset. */
const readDate = (text: string): string | undefined => parseBound(text.replace(' ', '+'));

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

/**
 * Names and dates follow the domain's own rules. The tests check that the schemas are valid, so skip that here.
 * Unoptimized code compiles faster and runs as fast.
 */
const ajv = new Ajv({
  allErrors: true,
  strictTypes: false,
  meta: false,
  validateSchema: false,
  verbose: true,
  code: { optimize: false },
});
ajv.addKeyword({
  keyword: 'validName',
  type: 'string',
  validate: (_: unknown, name: string) => nameFault(name) === undefined,
});
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

const valueAt = (root: unknown, path: string): unknown =>
  path
    .split('/')
    .slice(1)
    .reduce((value, key) => (value as Record<string, unknown>)[key], root);

/** Those that may be set: others are only tolerated. */
const settableOf = ({ properties }: Schema): readonly string[] =>
  Object.entries(properties as Readonly<Record<string, Schema>>)
    .filter(([, { readOnly }]) => readOnly !== true)
    .map(([name]) => name);

const textOf = (error: ErrorObject, root: unknown): string => {
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties': {
      const known = settableOf(error.parentSchema as Schema);
      return `is not a known member: ${suggestionFor(String(error.params['additionalProperty']), known)}`;
    }
    case 'maxItems':
      return 'must be empty: access rules are not supported';
    case 'enum':
      return `must be ${(error.params['allowedValues'] as string[]).map((value) => `"${value}"`).join(' or ')}`;
    case 'validName':
      return nameFault(valueAt(root, error.instancePath) as string) ?? 'is not a name';
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
  /** A missing body counts as an empty object. */
  readonly isOptional: boolean;
}

/** Further ones are not reported. */
const MAX_ERRORS = 20;

const READ_ONLY: Schema = { readOnly: true, description: 'Not to be set. May be sent back, and is ignored.' };

/** Refuses unknown members: a misspelt one that is silently ignored misleads. What responses show may be sent back. */
const strict = (schema: Schema, shownAs: Schema): Schema => {
  const shown = Object.keys(shownAs['properties'] ?? {});
  return {
    ...schema,
    properties: {
      ...Object.fromEntries(shown.map((name) => [name, READ_ONLY])),
      ...(schema['properties'] as object),
    },
    additionalProperties: false,
  };
};

/**
 * Compiles a JSON Schema into a check whose errors name the fields as sent. `shownAs` is the schema of the same resource
 * in responses.
 */
export const bodyCheck = <Body>(
  declared: Schema,
  shownAs: Schema,
  example: Body,
  { isOptional = false } = {},
): BodyCheck<Body> => {
  const schema = strict(declared, shownAs);
  const validate = ajv.compile<Body>(schema);
  const check = (sent: unknown): Body => {
    const parsed = isOptional ? (sent ?? {}) : sent;
    if (validate(parsed)) return parsed;
    const errors = new Map<string, string[]>();
    for (const error of validate.errors?.slice(0, MAX_ERRORS) ?? []) {
      const field = fieldOf(error);
      errors.set(field, [...(errors.get(field) ?? []), textOf(error, parsed)]);
    }
    throw invalid(Object.fromEntries(errors));
  };
  return Object.assign(check, { schema, example, isOptional });
};

/** A query parameter: how it is described, checked and read, in one place. */
export interface Parameter<T> {
  readonly description: string;
  /** For the OpenAPI document. */
  readonly schema: Schema;
  /** What its text must match. Default: `schema`. */
  readonly textSchema?: Schema;
  /** The error message if it does not. */
  readonly rule: string | ((text: string) => string);
  /** For the OpenAPI document. */
  readonly example: string | number | readonly string[];
  /** Whether an empty value counts as absent. */
  readonly mayBeEmpty: boolean;
  /** The value if it is absent. */
  readonly fallback: T;
  readonly read: (text: string) => T;
  /** If set, it may be repeated: every text must match, and this is called with all of them instead of `read`. */
  readonly readAll?: (texts: readonly string[]) => T;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The parsed values of parameters. */
export type ValuesOf<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never;
};

export const textParameter = (description: string, example: string): Parameter<string | undefined> => ({
  description,
  schema: { type: 'string' },
  rule: 'must be text',
  example,
  mayBeEmpty: true,
  fallback: undefined,
  read: (text) => text,
});

export const dateParameter = (description: string): Parameter<string | undefined> => ({
  ...textParameter(description, '2026-01-31T12:00:00Z'),
  schema: { type: 'string', format: 'date-time' },
  rule: formats['date-time'].rule,
  read: readDate,
});

export const mustBeInOrder = ({
  start_date,
  end_date,
}: Readonly<Record<'start_date' | 'end_date', string | undefined>>): void => {
  if (start_date !== undefined && end_date !== undefined && start_date > end_date)
    throw invalid({ start_date: ['must not be after end_date'] });
};

/** One of many names. A misspelt one is refused with the nearest. */
export const nameParameter = (
  description: string,
  names: readonly string[],
  example: string,
): Parameter<string | undefined> => ({
  ...textParameter(description, example),
  schema: { type: 'string', enum: names },
  rule: (text) => `is not known: ${suggestionFor(text, names)}`,
});

/** One of these values. */
export const choiceParameter = <T extends string>(description: string, values: readonly T[], example: T) => ({
  description,
  schema: { type: 'string', enum: values },
  rule: `must be one of ${values.join(', ')}`,
  example,
  mayBeEmpty: true,
  fallback: undefined,
  read: (text: string) => text as T,
});

/** At least 1. Values above `max` are lowered to it. */
export const wholeNumberParameter = <Fallback extends number | undefined>(
  description: string,
  fallback: Fallback,
  max = Number.MAX_SAFE_INTEGER,
): Parameter<number | Fallback> => ({
  description,
  schema: {
    type: 'integer',
    format: 'int64',
    minimum: 1,
    ...(fallback === undefined ? {} : { default: fallback }),
  },
  textSchema: { type: 'string', pattern: '^0*[1-9][0-9]*$' },
  rule: 'must be a whole number, 1 or more',
  example: fallback ?? 100,
  mayBeEmpty: false,
  fallback,
  read: (text) => Math.min(Number(text), max),
});

export const flagParameter = (description: string): Parameter<boolean> => ({
  description,
  schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
  rule: 'must be true or false',
  example: 'false',
  mayBeEmpty: true,
  fallback: false,
  read: (text) => text === 'true',
});

/** A list of values: the parameter may be repeated. */
export const listParameter = <T extends string>(
  item: Pick<Parameter<T>, 'description' | 'schema' | 'rule' | 'read'> & { readonly example: T },
): Parameter<readonly T[] | undefined> => ({
  ...item,
  schema: { type: 'array', items: item.schema },
  example: [item.example],
  textSchema: item.schema,
  mayBeEmpty: true,
  fallback: undefined,
  read: (text) => [item.read(text)],
  readAll: (texts) => texts.map(item.read),
});

/**
 * Repeated parameters are refused unless declared as a list, and so is `name[…]`. This includes unknown parameters,
 * because both forms mean something in other APIs.
 */
const parametersIn = (
  querystring: string,
  parameters: Parameters,
): ReadonlyMap<string, readonly string[]> => {
  const query = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(querystring)) {
    const earlier = query.get(name);
    if (name.includes('[')) throw invalid({ [name]: ['must be a plain parameter without brackets'] });
    const isList = Object.hasOwn(parameters, name) && parameters[name]?.readAll !== undefined;
    if (earlier !== undefined && !isList) throw invalid({ [name]: ['must be given at most once'] });
    if (earlier === undefined) query.set(name, [value]);
    else earlier.push(value);
  }
  return query;
};

/** Parses a query string, or throws `validation_failed` naming every invalid parameter. */
export interface QueryCheck<Query> {
  (querystring: string): Query;
  readonly parameters: Parameters;
}

const ruleText = (parameter: Parameter<unknown> | undefined, [text = '']: readonly string[] = []): string => {
  const { rule = 'is not valid' } = parameter ?? {};
  return typeof rule === 'string' ? rule : rule(text);
};

/** Undeclared parameters are ignored by default. Refuse them where a filter without effect would mislead the caller. */
export const queryCheck = <P extends Parameters>(
  parameters: P,
  undeclared: 'ignored' | 'refused' = 'ignored',
): QueryCheck<ValuesOf<P>> => {
  const all = Object.entries(parameters);
  const mustBeDeclared = (query: ReadonlyMap<string, unknown>): void => {
    if (undeclared === 'ignored') return;
    const unknown = [...query.keys()].filter((name) => !Object.hasOwn(parameters, name));
    if (unknown.length === 0) return;
    const known = Object.keys(parameters);
    const text = `is not a parameter here; those are ${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
    throw invalid(Object.fromEntries(unknown.slice(0, MAX_ERRORS).map((name) => [name, [text]])));
  };
  const properties = Object.fromEntries(
    all.map(([name, { schema, textSchema = schema }]) => [name, { type: 'array', items: textSchema }]),
  );
  const validate = ajv.compile({ type: 'object', properties });
  const defaults = Object.fromEntries(all.map(([name, { fallback }]) => [name, fallback])) as ValuesOf<P>;
  const check = (querystring: string): ValuesOf<P> => {
    if (querystring === '') return defaults;
    const query = parametersIn(querystring, parameters);
    mustBeDeclared(query);
    const texts: Record<string, readonly string[]> = {};
    for (const [name, { mayBeEmpty }] of all) {
      const present = (query.get(name) ?? []).filter((text) => text !== '' || !mayBeEmpty);
      if (present.length > 0) texts[name] = present;
    }
    if (!validate(texts)) {
      const invalidNames = new Set(validate.errors?.map((error) => fieldOf(error).split('.')[0] as string));
      throw invalid(
        Object.fromEntries(
          [...invalidNames].map((name) => [name, [ruleText(parameters[name], texts[name])]]),
        ),
      );
    }
    return Object.fromEntries(
      all.map(([name, { fallback, read, readAll = ([text = '']: readonly string[]) => read(text) }]) => [
        name,
        texts[name] === undefined ? fallback : readAll(texts[name]),
      ]),
    ) as ValuesOf<P>;
  };
  return Object.assign(check, { parameters });
};
