import type { Actor } from './events';
import { isAssignable } from './permissions';
import { refusal, type KnownKey, type RefusedAccess } from './refusal';
import type { Application, KeyHolder, Tenant, UnrevokedKey } from './tenant';

/** Who is calling: the holder of a key, or the operator on the command line. */
export type Caller =
  | { readonly kind: 'key'; readonly digest: string; readonly applicationId: string }
  | { readonly kind: 'operator'; readonly actor: Actor };

/** The status of a key, according to its tenant's stream. */
export type KeyStatus =
  | {
      readonly status: 'valid' | 'tenant_deleted';
      readonly keyId: string;
      readonly application: KeyHolder;
      readonly expiresAt?: string;
    }
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
  [...keys.values()].filter(({ expiresAt }) => !isExpired(expiresAt, at));

export const keyStatusIn = (now: Tenant, digest: string, at: string): KeyStatus => {
  const key = now.status === 'absent' ? undefined : now.keys.get(digest);
  if (now.status === 'absent' || key === undefined) return { status: 'unknown' };
  const { id: keyId, applicationId } = key;
  const known = now.status === 'deleted' ? {} : { key: { keyId, applicationId } };
  if (key.revoked) return { status: 'revoked', ...known };
  if (isExpired(key.expiresAt, at)) return { status: 'expired', ...known };
  const application = now.applications.get(applicationId);
  if (application === undefined) return { status: 'application_deleted', ...known };
  const expiry = key.expiresAt === undefined ? {} : { expiresAt: key.expiresAt };
  return { status: now.status === 'deleted' ? 'tenant_deleted' : 'valid', keyId, application, ...expiry };
};

/** The caller gets the same answer for every reason; only the operator's log shows the reason. */
export const keyRefused = (reason: string, access?: RefusedAccess) =>
  refusal(
    'key_refused',
    'The API key is missing, malformed, unknown, expired or revoked.',
    { reason },
    access,
  );

export const requireValid = (
  found: KeyStatus,
): { readonly keyId: string; readonly application: KeyHolder; readonly expiresAt?: string } => {
  if (found.status === 'valid') return found;
  const isKnown = 'key' in found && found.key !== undefined;
  throw keyRefused(found.status, isKnown ? { reason: found.status, key: found.key } : undefined);
};

/** A permission counts only if the Application holds it and its type may hold it. */
export const holds = ({ type, permissions }: KeyHolder, permission: string): boolean =>
  isAssignable(permission, type) && permissions.includes(permission);

export const mustHold = (application: KeyHolder, permission: string): void => {
  if (holds(application, permission)) return;
  throw refusal(
    'permission_missing',
    `This requires the permission ${permission}.`,
    {
      required_permission: permission,
      application_type: application.type,
      assignable: isAssignable(permission, application.type),
    },
    { reason: 'permission_missing', permissions: [permission] },
  );
};
