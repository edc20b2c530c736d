import type { Actor } from './events';
import { permissions, type ApplicationType, type Permission } from './permissions';
import { refusal, type KnownKey, type RefusedAccess } from './refusal';
import type { Application, DecisionContext, KeyHolder, Tenant, UnrevokedKey } from './tenant';

export const permissionsOf = (type: ApplicationType): readonly Permission[] =>
  permissions.filter((permission) => permission.applicationTypes.includes(type));

/** Whether an Application of this type may ever hold this permission. */
export const isAssignable = (permission: string, type: ApplicationType): boolean =>
  permissionsOf(type).some((assignable) => assignable.type === permission);

/** Who is calling: the holder of a key, or the operator on the command line. */
export type Caller =
  | { readonly kind: 'key'; readonly digest: string; readonly applicationId: string }
  | { readonly kind: 'operator'; readonly actor: Actor };

/** What a key stands for. */
export interface ValidKey {
  readonly keyId: string;
  readonly application: KeyHolder;
  /** When it expires, if it does. */
  readonly expiresAt?: string | undefined;
}

/** The status of a key, according to its tenant's stream. */
export type KeyStatus =
  | (ValidKey & { readonly status: 'valid' | 'tenant_deleted' })
  | { readonly status: 'unknown' }
  | {
      readonly status: 'revoked' | 'expired' | 'application_deleted';
      /** The key, unless its tenant is deleted. */
      readonly key?: KnownKey;
    };

/** A key expires at `expiresAt`, not just after it. */
export const isExpired = (expiresAt: string | undefined, at: string): boolean =>
  expiresAt !== undefined && Date.parse(expiresAt) <= Date.parse(at);

/** The keys of an Application that are neither revoked nor expired, oldest first. */
export const liveKeysOf = ({ keys }: Application, at: string): readonly UnrevokedKey[] =>
  [...keys.values()].filter(({ expires_at }) => !isExpired(expires_at, at));

export const keyStatusIn = (now: Tenant, digest: string, at: string): KeyStatus => {
  const key = now.status === 'absent' ? undefined : now.keys.get(digest);
  if (now.status === 'absent' || key === undefined) return { status: 'unknown' };
  const { id: keyId, application_id: applicationId } = key;
  const application = now.applications.get(applicationId);
  const applicationName = application?.name;
  const known = now.status === 'deleted' ? {} : { key: { keyId, applicationId, applicationName } };
  if (key.revoked) return { status: 'revoked', ...known };
  if (isExpired(key.expires_at, at)) return { status: 'expired', ...known };
  if (application === undefined) return { status: 'application_deleted', ...known };
  const { expires_at: expiresAt } = key;
  return { status: now.status === 'deleted' ? 'tenant_deleted' : 'valid', keyId, application, expiresAt };
};

/** The caller gets the same answer for every reason; only the operator's log shows the reason. */
export const keyRefused = (reason: string, access?: RefusedAccess) =>
  refusal('key_refused', 'The API key is missing, malformed, expired or revoked.', { reason }, access);

export const requireValid = (found: KeyStatus): ValidKey => {
  if (found.status === 'valid') return found;
  const isKnown = 'key' in found && found.key !== undefined;
  throw keyRefused(found.status, isKnown ? { reason: found.status, key: found.key } : undefined);
};

/** A permission counts only if the Application holds it and its type may hold it. */
export const holds = (application: KeyHolder, permission: string): boolean =>
  isAssignable(permission, application.type) && application.permissions.includes(permission);

export const mustHold = (application: KeyHolder, permission: string): void => {
  if (holds(application, permission)) return;
  const { type } = application;
  const assignable = isAssignable(permission, type);
  throw refusal(
    'permission_missing',
    `This requires the permission ${permission}.`,
    { required_permission: permission, application_type: type, assignable },
    { reason: 'permission_missing', permissions: [permission] },
  );
};

/** The permission to change Applications, their permissions and their keys. */
const MANAGE = 'application:update';

/**
 * An Application that holds everything its type may hold, including MANAGE, acts for the owner and may grant any
 * permission, even one that only other types may hold.
 */
const actsForOwner = (application: KeyHolder): boolean =>
  permissionsOf(application.type).every(({ type }) => holds(application, type)) && holds(application, MANAGE);

/** Prevents privilege escalation, by a permission or by a key of an Application that holds it. */
export const mustHoldAll = ({ requester }: DecisionContext, wanted: readonly string[], what: string) => {
  if (requester.kind === 'operator' || actsForOwner(requester.application)) return;
  const missing = wanted.filter((permission) => !holds(requester.application, permission));
  if (missing.length === 0) return;
  throw refusal(
    'permission_not_held',
    `${what} requires a key that itself has ${missing.join(', ')}, or every permission that its type may have.`,
    { missing_permissions: missing },
    { reason: 'permission_missing', permissions: missing },
  );
};
