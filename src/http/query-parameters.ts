import { suggestionFor } from '../nearest';
import type { Schema } from './schema';
import { ajv, fieldOf, formats, invalid, MAX_ERRORS, readDate } from './validation';

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
  /** The result for an empty query string. */
  readonly defaults: Query;
}

const ruleText = (parameter: Parameter<unknown> | undefined, [text = '']: readonly string[] = []): string => {
  const { rule = 'is not valid' } = parameter ?? {};
  return typeof rule === 'string' ? rule : rule(text);
};

/** What is said about a parameter that a route does not have: one that is silently ignored misleads the caller. */
const undeclaredText = (known: readonly string[]): string => {
  if (known.length === 0) return 'is not a parameter here; there are none';
  if (known.length === 1) return `is not a parameter here; the only one is ${known[0]}`;
  return `is not a parameter here; those are ${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
};

const mustBeDeclared = (query: ReadonlyMap<string, unknown>, parameters: Parameters): void => {
  const undeclared = [...query.keys()].filter((name) => !Object.hasOwn(parameters, name));
  if (undeclared.length === 0) return;
  const text = undeclaredText(Object.keys(parameters));
  throw invalid(Object.fromEntries(undeclared.slice(0, MAX_ERRORS).map((name) => [name, [text]])));
};

export const queryCheck = <P extends Parameters>(parameters: P): QueryCheck<ValuesOf<P>> => {
  const all = Object.entries(parameters);
  const properties = Object.fromEntries(
    all.map(([name, { schema, textSchema = schema }]) => [name, { type: 'array', items: textSchema }]),
  );
  const validate = ajv.compile({ type: 'object', properties });
  const defaults = Object.fromEntries(all.map(([name, { fallback }]) => [name, fallback])) as ValuesOf<P>;
  const check = (querystring: string): ValuesOf<P> => {
    const query = parametersIn(querystring, parameters);
    mustBeDeclared(query, parameters);
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
  return Object.assign(check, { parameters, defaults });
};
