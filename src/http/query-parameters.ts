import { uuidFrom } from '../domain/texts';
import { suggestionFor } from '../fault';
import { count, flag, listOf, oneOf, text, uuid, type Schema } from './schema';
import { FEW, formats, invalid, MAX_ERRORS, readDate } from './validation';

/** A query parameter: how it is described and read, in one place. */
export interface Parameter<T> {
  readonly description: string;
  /** The schema and the example are for the OpenAPI document. Only a list may be repeated. */
  readonly schema: Schema;
  readonly example: string | number | readonly string[];
  /** The value if it is absent. An empty text is absent, too, but is no number. */
  readonly fallback: T;
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

export const choiceParameter = <T extends string>(
  description: string,
  values: readonly T[],
  example: T,
): Parameter<T | undefined> => ({
  ...textParameter(description, example),
  fallback: undefined,
  schema: oneOf(values),
  read: ([sent]) => values.find((value) => value === sent),
  rule: ([sent = '']) =>
    values.length > FEW
      ? `is not known: ${suggestionFor(sent, values)}`
      : `must be one of ${values.join(', ')}`,
});

export const uuidParameter = (description: string, example: string): Parameter<string | undefined> => ({
  ...textParameter(description, example),
  schema: uuid,
  read: ([sent]) => uuidFrom(sent),
  rule: () => formats.uuid.rule,
});

/** A parameter that may be repeated. */
export const severalOf = <T extends string>(
  one: Parameter<T | undefined>,
): Parameter<readonly T[] | undefined> => ({
  ...one,
  schema: listOf(one.schema),
  example: [String(one.example)],
  fallback: undefined,
  read: (texts) => {
    const values = texts.flatMap((sent) => one.read([sent]) ?? []);
    return values.length === texts.length ? values : undefined;
  },
});

export const wholeNumberParameter = <Fallback extends number | undefined>(
  description: string,
  fallback: Fallback,
  { least = 1, most = Infinity } = {},
): Parameter<number | Fallback> => {
  const bounds = { minimum: least, ...(most === Infinity ? {} : { maximum: most }) };
  return {
    description,
    schema: { ...count, ...bounds, ...(fallback === undefined ? {} : { default: fallback }) },
    example: fallback ?? 100,
    fallback,
    read: ([sent = '']) => {
      const value = /^[0-9]+$/.test(sent) ? Math.min(Number(sent), Number.MAX_SAFE_INTEGER) : NaN;
      return value >= least && value <= most ? value : undefined;
    },
    rule: () =>
      most === Infinity
        ? `must be a whole number, ${least} or more`
        : `must be a whole number from ${least} to ${most}`,
  };
};

export const flagParameter = (description: string): Parameter<boolean> => ({
  description,
  schema: { ...flag, default: 'false' },
  example: 'false',
  fallback: false,
  read: ([sent]) => (sent === 'true' || sent === 'false' ? sent === 'true' : undefined),
  rule: () => 'must be true or false',
});

/** What is said about a parameter that a route does not have: one that is silently ignored misleads the caller. */
const undeclaredText = (known: readonly string[]): string => {
  if (known.length === 0) return 'is not a parameter here; there are none';
  if (known.length === 1) return `is not a parameter here; the only one is ${known[0]}`;
  return `is not a parameter here; those are ${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
};

/** A function that parses a query string, or throws `validation_failed` naming every invalid parameter. */
export const queryReader = (parameters: Parameters) => {
  const fallbacks = Object.entries(parameters).map(([name, { fallback }]) => [name, fallback]);
  const defaults = Object.fromEntries(fallbacks);

  /** The value of a parameter, or what is wrong with it. In other APIs, lists and brackets mean something. */
  const valueOf = (name: string, texts: readonly string[]): { value: unknown } | { wrong: string } => {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (name.includes('[')) return { wrong: 'must be a plain parameter without brackets' };
    if (texts.length > 1 && parameter?.schema['type'] !== 'array')
      return { wrong: 'must be given at most once' };
    if (parameter === undefined) return { wrong: undeclaredText(Object.keys(parameters)) };
    const present = texts.filter((sent) => sent !== '' || parameter.schema['type'] === 'integer');
    if (present.length === 0) return { value: parameter.fallback };
    const value = parameter.read(present);
    return value === undefined ? { wrong: parameter.rule(present) } : { value };
  };

  return (querystring: string): ValuesOf<Parameters> => {
    const values: Record<string, unknown> = { ...defaults };
    const errors: [string, readonly string[]][] = [];
    const sent = new URLSearchParams(querystring);
    for (const name of new Set(sent.keys())) {
      // Each look for a name takes as long as the query is: so many are enough.
      if (errors.length === MAX_ERRORS) break;
      const found = valueOf(name, sent.getAll(name));
      if ('value' in found) values[name] = found.value;
      else errors.push([name, [found.wrong]]);
    }
    if (errors.length > 0) throw invalid(Object.fromEntries(errors));
    return values;
  };
};
