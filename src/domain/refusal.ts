import type { RefusalReason } from './key-use';

export interface KnownKey {
  readonly keyId: string;
  readonly applicationId: string;
  /** Undefined: it is deleted. */
  readonly applicationName?: string | undefined;
}

/** What a known key was refused: something that it may not do, or everything because it is no longer valid. */
export type RefusedAccess =
  | { readonly reason: 'permission_missing'; readonly permissions: readonly string[] }
  | { readonly reason: Exclude<RefusalReason, 'permission_missing'>; readonly key: KnownKey };

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
  | 'key_not_found'
  | 'service_not_found'
  | 'service_only'
  | 'tenant_only';

export interface Refusal extends Error {
  readonly name: 'Refusal';
  readonly code: RefusalCode;
  readonly more: Readonly<Record<string, unknown>>;
  /** If it is about the access of a known key, which is recorded for its tenant. */
  readonly access?: RefusedAccess | undefined;
}

export const refusal = (
  code: RefusalCode,
  message: string,
  more: Readonly<Record<string, unknown>> = {},
  access?: RefusedAccess,
): Refusal => Object.assign(new Error(message), { name: 'Refusal' as const, code, more, access });

/** Refuses one value, by the name of its field in requests. */
export const invalidValue = (field: string, sentence: string): Refusal =>
  refusal('validation_failed', sentence, { errors: { [field]: [sentence] } });

export const isRefusal = (error: unknown): error is Refusal =>
  error instanceof Error && error.name === 'Refusal';
