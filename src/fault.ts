import { isNativeError } from 'node:util/types';
import type { ProblemCode } from './problems';

/** Codes that are not problems: each is caught, turned into a problem, or ends a stream. */
type InternalCode =
  | 'commit_failed'
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

export const messageOf = (error: unknown): string => (isError(error) ? error.message : String(error));

/** How many characters must be added, left out or replaced to turn one text into the other. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 0; i < a.length; i += 1) {
    let left = i + 1;
    row = row.map((above, j) => {
      if (j > 0) left = Math.min(left + 1, above + 1, (row[j - 1] ?? 0) + Number(a[i] !== b[j - 1]));
      return left;
    });
  }
  return row.at(-1) ?? 0;
};

const MAX_LENGTH = 64;

/** The known name that a misspelt one was probably meant to be: a longer form of it, or one with few differences. */
const nearestTo = (text: string, known: readonly string[]): string | undefined => {
  if (text.length < 3 || text.length > MAX_LENGTH) return undefined;
  const wanted = text.toLowerCase();
  const [nearest] = known
    .map((name) => ({
      name,
      differences: name.toLowerCase().startsWith(wanted) ? 0 : distance(wanted, name.toLowerCase()),
    }))
    .toSorted((a, b) => a.differences - b.differences);
  return nearest !== undefined && nearest.differences <= text.length / 3 ? nearest.name : undefined;
};

/** For error messages: the nearest name, or all of them. */
export const suggestionFor = (text: string, known: readonly string[]): string => {
  const nearest = nearestTo(text, known);
  if (nearest !== undefined) return `did you mean ${nearest}?`;
  const [last, ...others] = known.toReversed();
  return others.length === 0
    ? `there is only ${last}`
    : `there are ${others.toReversed().join(', ')} and ${last}`;
};
