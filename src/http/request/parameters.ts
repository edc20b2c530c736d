import { invalid } from './invalid';
import type { Schema } from '../routes/schema';

/** A query parameter of a route: how it is described and how it is read, in one place. */
export interface Parameter<T> {
  readonly description: string;
  readonly schema: Schema;
  /** For the published description. */
  readonly example: string | number;
  /** What it is when it is not given. */
  readonly fallback: T;
  /** An empty one counts as not given. */
  readonly mayBeEmpty: boolean;
  /** Undefined: the text makes no sense. */
  readonly read: (text: string) => T | undefined;
  /** What to say then. */
  readonly rule: string;
}

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The values of a route's parameters. */
export type Given<P extends Parameters> = {
  readonly [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never;
};

export const parameter = <T>(one: Parameter<T>): Parameter<T> => one;

export const textParameter = (description: string, example: string): Parameter<string | undefined> => ({
  description,
  schema: { type: 'string' },
  example,
  fallback: undefined,
  mayBeEmpty: true,
  read: (text) => text,
  rule: 'must be text',
});

/** Reads every parameter that a route declares, and names all that are wrong. Others are ignored. */
export const givenIn = <P extends Parameters>(
  parameters: P,
  query: ReadonlyMap<string, string>,
): Given<P> => {
  const errors: Record<string, string[]> = {};
  const values = Object.entries(parameters).map(([name, { fallback, mayBeEmpty, read, rule }]) => {
    const text = query.get(name);
    if (text === undefined || (text === '' && mayBeEmpty)) return [name, fallback];
    const value = read(text);
    if (value === undefined) errors[name] = [rule];
    return [name, value];
  });
  if (Object.keys(errors).length > 0) throw invalid(errors);
  return Object.fromEntries(values) as Given<P>;
};
