/**
 * A fault is an expected failure with a stable `code`, for example `log_unavailable`. Faults and refusals are told
 * apart by that code only, so they may cross threads and packages.
 */
export interface Fault extends Error {
  readonly code: string;
  readonly more: Readonly<Record<string, unknown>>;
}

export const fault = (code: string, sentence: string, more: Record<string, unknown> = {}): Fault =>
  Object.assign(new Error(sentence), { name: 'Fault', code, more });

export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
