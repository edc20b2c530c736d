import { distance } from 'fastest-levenshtein';
import { isNativeError } from 'node:util/types';
import type { ProblemCode } from './problems';

/** Codes that are not problems: each is caught, turned into a problem, or ends a stream. */
type InternalCode =
  | 'commit_failed'
  | 'document_exists'
  | 'event_invalid'
  | 'event_too_large'
  | 'expired'
  | 'read_model_set_removed'
  | 'read_models_busy'
  | 'no_answer'
  | 'stream_changed'
  | 'stream_cut_off';

export type FaultCode = ProblemCode | InternalCode;

/**
 * A fault is an expected failure with a stable `code`, for example `log_unavailable`. Callers recognize it by that code
 * only, so it may cross threads and packages.
 */
export interface Fault extends Error {
  readonly code: string;
  readonly more: Readonly<Record<string, unknown>>;
}

export const fault = (code: FaultCode, message: string, more: Record<string, unknown> = {}): Fault =>
  Object.assign(new Error(message), { name: 'Fault', code, more });

/** Also for errors of Node itself where the program runs in a context of its own, as in tests. */
const isError = (value: unknown): value is Error => value instanceof Error || isNativeError(value);

export const codeOf = (error: unknown): string | undefined =>
  isError(error) && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** The details of an error besides its message. */
export const moreOf = (error: unknown): Readonly<Record<string, unknown>> =>
  (error as Partial<Fault> | undefined)?.more ?? {};

const AWAY: ReadonlySet<string | undefined> = new Set<ProblemCode>([
  'log_unavailable',
  'outcome_unknown',
  'read_models_unavailable',
]);

/** Whether a store did not answer, or not so. Waiting may help, unless the fault is final. */
export const isAway = (error: unknown): boolean => AWAY.has(codeOf(error));

/** Whether waiting cannot help. */
export const isFinal = (error: unknown): boolean => moreOf(error)['isFinal'] === true;

export const messageOf = (error: unknown): string => (isError(error) ? error.message : String(error));

/** The known name that a misspelt one was probably meant to be: a longer form of it, or one with few differences. */
const nearestTo = (text: string, known: readonly string[]): string | undefined => {
  if (text.length < 3 || text.length > 64) return undefined;
  const wanted = text.toLowerCase();
  const differences = (name: string): number =>
    name.toLowerCase().startsWith(wanted) ? 0 : distance(wanted, name.toLowerCase());
  return known
    .filter((name) => differences(name) <= text.length / 3)
    .toSorted((a, b) => differences(a) - differences(b))[0];
};

/** For error messages: the nearest name, or all of them. */
export const suggestionFor = (text: string, known: readonly string[]): string => {
  const nearest = nearestTo(text, known);
  if (nearest !== undefined) return `did you mean ${nearest}?`;
  const names = new Intl.ListFormat('en-GB').format(known);
  return known.length === 1 ? `there is only ${names}` : `there are ${names}`;
};
