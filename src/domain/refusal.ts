/**
 * A refusal is an answer, not a failure: the state of the tenant does not allow the request. Its `code` is stable and
 * documented in docs/errors.md.
 */
export type RefusalCode =
  | 'key_refused'
  | 'permission_missing'
  | 'tenant_not_found'
  | 'tenant_exists'
  | 'tenant_deleted'
  | 'application_not_found'
  | 'application_exists'
  | 'application_type_fixed'
  | 'too_many_applications'
  | 'permission_unknown'
  | 'permission_not_assignable'
  | 'permission_not_held'
  | 'key_not_found'
  | 'key_exists'
  | 'key_already_revoked'
  | 'too_many_keys'
  | 'name_invalid'
  | 'expiry_invalid';

export interface Refusal extends Error {
  readonly name: 'Refusal';
  readonly code: RefusalCode;
  readonly more: Readonly<Record<string, unknown>>;
}

export const refusal = (code: RefusalCode, message: string, more: Record<string, unknown> = {}): Refusal =>
  Object.assign(new Error(message), { name: 'Refusal' as const, code, more });

export const isRefusal = (error: unknown): error is Refusal =>
  error instanceof Error && error.name === 'Refusal';
