/**
 * A refusal is an answer, not a failure: the state of the tenant does not allow the request. Its `code` is stable and
 * documented in docs/errors.md.
 */
export type RefusalCode =
  | 'validation_failed'
  | 'key_refused'
  | 'permission_missing'
  | 'tenant_not_found'
  | 'already_exists'
  | 'tenant_deleted'
  | 'application_not_found'
  | 'application_type_fixed'
  | 'quota_exceeded'
  | 'permission_not_held'
  | 'key_not_found';
export interface Refusal extends Error {
  readonly name: 'Refusal';
  readonly code: RefusalCode;
  readonly more: Readonly<Record<string, unknown>>;
}

export const refusal = (code: RefusalCode, message: string, more: Record<string, unknown> = {}): Refusal =>
  Object.assign(new Error(message), { name: 'Refusal' as const, code, more });

/** Refuses one value, by the name of its field in requests. */
export const invalidValue = (field: string, sentence: string): Refusal =>
  refusal('validation_failed', sentence, { errors: { [field]: [sentence] } });

export const isRefusal = (error: unknown): error is Refusal =>
  error instanceof Error && error.name === 'Refusal';
