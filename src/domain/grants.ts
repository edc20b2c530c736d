import { holds, isLive } from './authority';
import { keyBy, type KeyHolder, type Key } from './keys';
import { permissionsOf } from './permissions';
import { refusal } from './refusal';
import type { ActiveTenant, Application, DecisionContext } from './tenant';

/** The permission to change Applications, their permissions and their keys. */
const MANAGE = 'application:update';

/**
 * An Application that holds everything its type may hold, including MANAGE, acts for the owner and may grant any
 * permission, even one that only other types may hold.
 */
const actsForOwner = (application: KeyHolder): boolean =>
  permissionsOf(application.type).every(({ type }) => holds(application, type)) && holds(application, MANAGE);

/**
 * Prevents privilege escalation, be it by granting a permission or by creating a key of an Application that holds it.
 */
export const mustHoldAll = (
  { requester }: DecisionContext,
  wanted: readonly string[],
  what: string,
): void => {
  if (requester.kind === 'operator' || actsForOwner(requester.application)) return;
  const missing = wanted.filter((permission) => !holds(requester.application, permission));
  if (missing.length === 0) return;
  throw refusal(
    'permission_not_held',
    `${what} requires a key that itself has ${missing.join(', ')}, or every permission that its type may have.`,
    { missing_permissions: missing },
  );
};

/** Without those that its type may not hold. */
export const effectivePermissions = (application: KeyHolder): readonly string[] =>
  application.permissions.filter((permission) => holds(application, permission));

/** The live keys of an Application, oldest first. */
export const liveKeysOf = (
  { keys }: Pick<ActiveTenant, 'keys'>,
  { digests }: Pick<Application, 'digests'>,
  at: string,
): readonly Key[] => digests.flatMap((digest) => keyBy(keys, digest) ?? []).filter((key) => isLive(key, at));

export interface KeyWithDigest extends Key {
  readonly digest: string;
}

/** The same with their digests. */
export const liveKeysWithDigests = (
  { keys }: Pick<ActiveTenant, 'keys'>,
  { digests }: Pick<Application, 'digests'>,
  at: string,
): readonly KeyWithDigest[] =>
  digests.flatMap((digest) => {
    const key = keyBy(keys, digest);
    return key !== undefined && isLive(key, at) ? [{ ...key, digest }] : [];
  });

type IsLost = (application: Application, key: Key) => boolean;

/** Whether a live key that can manage Applications is left, not counting lost ones. */
export const hasManager = (tenant: ActiveTenant, at: string, isLost: IsLost = () => false): boolean => {
  const remains = (application: Application): boolean =>
    holds(application, MANAGE) &&
    liveKeysOf(tenant, application, at).some((key) => !isLost(application, key));
  for (const application of tenant.applications.values()) if (remains(application)) return true;
  return false;
};

const FORCE = 'If this is intended, repeat the request with ?force=true.';

/** Operators can always create another key, so they need no such protection. */
export const mustKeepManager = (
  tenant: ActiveTenant,
  { requester, at }: DecisionContext,
  { force, isLost }: { readonly force: boolean; readonly isLost: IsLost },
): void => {
  if (force || requester.kind === 'operator' || !hasManager(tenant, at) || hasManager(tenant, at, isLost))
    return;
  throw refusal(
    'last_managing_key',
    `After this, no key of the tenant would hold ${MANAGE}, and only the operator could manage its Applications. ${FORCE}`,
  );
};

/** A change that takes access from the caller's own key needs `force`. */
export const requireForce = (
  { requester }: DecisionContext,
  {
    force,
    ends,
  }: { readonly force: boolean; readonly ends: (own: KeyHolder, keyId: string) => string | undefined },
): void => {
  if (force || requester.kind === 'operator') return;
  const what = ends(requester.application, requester.keyId);
  if (what !== undefined) throw refusal('own_access_would_end', `${what} ${FORCE}`);
};
