import { suggestionFor } from '../fault';
import { flag, listOf, oneOf, positive, text, uuid, type Schema } from './schema';
import { formats, invalid, MAX_ERRORS, readDate } from './validation';

/** A query parameter: how it is described and read, in one place. */
export interface Parameter<T> {
  readonly description: string;
  /** The schema and the example are for the OpenAPI document. */
  readonly schema: Schema;
  readonly example: string | number | readonly string[];
  /** The value if it is absent. An empty text is absent, too, unless `emptyIsRefused`. */
  readonly fallback: T;
  readonly emptyIsRefused?: true;
  /** Whether it may be repeated. */
  readonly isList?: true;
  /** Undefined: these texts, of which there is at least one, are refused. */
  readonly read: (texts: readonly string[]) => T | undefined;
  /** The error message then. */
  readonly rule: (texts: readonly string[]) => string;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

export type ValuesOf<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never;
};

export const textParameter = (description: string, example: string): Parameter<string | undefined> => ({
  description,
  schema: text,
  example,
  fallback: undefined,
  read: ([sent]) => sent,
  rule: () => 'must be text',
});

export const dateParameter = (description: string): Parameter<string | undefined> => ({
  ...textParameter(description, '2026-01-31T12:00:00Z'),
  schema: { type: 'string', format: 'date-time' },
  read: ([sent = '']) => readDate(sent),
  rule: () => formats['date-time'].rule,
});

export const mustBeInOrder = ({
  start_date,
  end_date,
}: Readonly<Record<'start_date' | 'end_date', string | undefined>>): void => {
  if (start_date !== undefined && end_date !== undefined && start_date > end_date)
    throw invalid({ start_date: ['must not be after end_date'] });
};

const isOneOf =
  <T extends string>(values: readonly T[]) =>
  (sent: string): sent is T =>
    values.includes(sent as T);

export const choiceParameter = <T extends string>(
  description: string,
  values: readonly T[],
  example: T,
): Parameter<T | undefined> => ({
  description,
  schema: oneOf(values),
  example,
  fallback: undefined,
  read: (texts) => texts.find(isOneOf(values)),
  rule: () => `must be one of ${values.join(', ')}`,
});

/** One of many names. A misspelt one is refused with the nearest. */
export const nameParameter = (description: string, names: readonly string[], example: string) => ({
  ...choiceParameter(description, names, example),
  rule: ([sent = '']: readonly string[]) => `is not known: ${suggestionFor(sent, names)}`,
});

export const choicesParameter = <T extends string>(
  description: string,
  values: readonly T[],
  example: T,
): ListParameter<T> => ({
  ...choiceParameter(description, values, example),
  schema: listOf(oneOf(values)),
  example: [example],
  fallback: undefined,
  isList: true,
  read: (texts) => (texts.every(isOneOf(values)) ? texts : undefined),
});

type ListParameter<T> = Parameter<readonly T[] | undefined>;

export const uuidsParameter = (description: string, example: string): ListParameter<string> => ({
  description,
  schema: listOf(uuid),
  example: [example],
  fallback: undefined,
  isList: true,
  read: (texts) => (texts.every(formats.uuid.isMet) ? texts.map((sent) => sent.toLowerCase()) : undefined),
  rule: () => formats.uuid.rule,
});

/** At least 1. Values above `max` are lowered to it. */
export const wholeNumberParameter = <Fallback extends number | undefined>(
  description: string,
  fallback: Fallback,
  max = Number.MAX_SAFE_INTEGER,
): Parameter<number | Fallback> => ({
  description,
  schema: { ...positive, ...(fallback === undefined ? {} : { default: fallback }) },
  example: fallback ?? 100,
  fallback,
  emptyIsRefused: true,
  read: ([sent = '']) => (/^0*[1-9][0-9]*$/.test(sent) ? Math.min(Number(sent), max) : undefined),
  rule: () => 'must be a whole number, 1 or more',
});

export const flagParameter = (description: string): Parameter<boolean> => ({
  description,
  schema: { ...flag, default: 'false' },
  example: 'false',
  fallback: false,
  read: ([sent]) => (sent === 'true' || sent === 'false' ? sent === 'true' : undefined),
  rule: () => 'must be true or false',
});

/** Parses a query string, or throws `validation_failed` naming every invalid parameter. */
export interface QueryCheck<Query> {
  (querystring: string): Query;
  readonly parameters: Parameters;
  /** The result for an empty query string. */
  readonly defaults: Query;
}

/** What is said about a parameter that a route does not have: one that is silently ignored misleads the caller. */
const undeclaredText = (known: readonly string[]): string => {
  if (known.length === 0) return 'is not a parameter here; there are none';
  if (known.length === 1) return `is not a parameter here; the only one is ${known[0]}`;
  return `is not a parameter here; those are ${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
};

const textsIn = (querystring: string): ReadonlyMap<string, readonly string[]> => {
  const texts = new Map<string, string[]>();
  for (const [name, value] of new URLSearchParams(querystring)) {
    const earlier = texts.get(name);
    if (earlier === undefined) texts.set(name, [value]);
    else earlier.push(value);
  }
  return texts;
};

export const queryCheck = <P extends Parameters>(parameters: P): QueryCheck<ValuesOf<P>> => {
  const fallbacks = Object.entries(parameters).map(([name, { fallback }]) => [name, fallback]);
  const defaults = Object.fromEntries(fallbacks) as ValuesOf<P>;

  /** The value of a parameter, or what is wrong with it. In other APIs, lists and brackets mean something. */
  const valueOf = (name: string, texts: readonly string[]): { value: unknown } | { wrong: string } => {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (name.includes('[')) return { wrong: 'must be a plain parameter without brackets' };
    if (texts.length > 1 && parameter?.isList !== true) return { wrong: 'must be given at most once' };
    if (parameter === undefined) return { wrong: undeclaredText(Object.keys(parameters)) };
    const present = texts.filter((sent) => sent !== '' || parameter.emptyIsRefused);
    if (present.length === 0) return { value: parameter.fallback };
    const value = parameter.read(present);
    return value === undefined ? { wrong: parameter.rule(present) } : { value };
  };

  const check = (querystring: string): ValuesOf<P> => {
    const values: Record<string, unknown> = { ...defaults };
    const errors: [string, readonly string[]][] = [];
    for (const [name, texts] of textsIn(querystring)) {
      const found = valueOf(name, texts);
      if ('value' in found) values[name] = found.value;
      else errors.push([name, [found.wrong]]);
    }
    if (errors.length > 0) throw invalid(Object.fromEntries(errors.slice(0, MAX_ERRORS)));
    return values as ValuesOf<P>;
  };
  return Object.assign(check, { parameters, defaults });
};
