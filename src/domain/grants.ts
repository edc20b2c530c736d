import { holds, isLive, type KeyHolder } from './authority';
import { keyBy } from './keys';
import { permissionsOf } from './permissions';
import { refusal } from './refusal';
import type { ActiveTenant, Application, Key, DecisionContext } from './tenant';

/** What changes Applications, their permissions and their keys. */
const MANAGE = 'application:update';

/**
 * An Application that holds all that its type may hold is the owner's: within its tenant there is nothing more to gain.
 * It may also grant what only other types may hold.
 */
const isOwners = (application: KeyHolder): boolean =>
  permissionsOf(application.type).every(({ type }) => holds(application, type)) && holds(application, MANAGE);

/** Nobody gets more than they have: neither by granting a permission, nor by a key of an Application that holds it. */
export const mustHoldAll = ({ asker }: DecisionContext, wanted: readonly string[], what: string): void => {
  if (asker.kind === 'operator' || isOwners(asker.application)) return;
  const missing = wanted.filter((permission) => !holds(asker.application, permission));
  if (missing.length === 0) return;
  throw refusal(
    'permission_not_held',
    `${what} requires a key that has ${missing.join(', ')} itself, or every permission that its type may have.`,
    { missing_permissions: missing },
  );
};

/** The permissions of an Application that count. */
export const effectivePermissions = (application: KeyHolder): readonly string[] =>
  application.permissions.filter((permission) => holds(application, permission));

export const liveKeysOf = (
  { keys }: Pick<ActiveTenant, 'keys'>,
  { digests }: Pick<Application, 'digests'>,
  at: string,
): readonly Key[] => digests.flatMap((digest) => keyBy(keys, digest) ?? []).filter((key) => isLive(key, at));

type IsLost = (application: Application, key: Key) => boolean;

/** Is there a live key that can manage Applications, and is not lost? */
export const hasManager = (tenant: ActiveTenant, at: string, isLost: IsLost = () => false): boolean => {
  const remains = (application: Application): boolean =>
    holds(application, MANAGE) &&
    liveKeysOf(tenant, application, at).some((key) => !isLost(application, key));
  for (const application of tenant.applications.values()) if (remains(application)) return true;
  return false;
};

const FORCE = 'Repeat it with ?force=true if that is meant.';

/** The operator can always make another key, and needs no protection from this. */
export const mustKeepManager = (
  tenant: ActiveTenant,
  { asker, at }: DecisionContext,
  { force, isLost }: { readonly force: boolean; readonly isLost: IsLost },
): void => {
  if (force || asker.kind === 'operator' || !hasManager(tenant, at) || hasManager(tenant, at, isLost)) return;
  throw refusal(
    'last_managing_key',
    `After this no key of the tenant holds ${MANAGE}, and only the operator could manage its Applications. ${FORCE}`,
  );
};

/** What ends the caller's own access in whole or in part is done only if the caller says so. */
export const requireForce = (
  { asker }: DecisionContext,
  {
    force,
    ends,
  }: { readonly force: boolean; readonly ends: (own: KeyHolder, keyId: string) => string | undefined },
): void => {
  if (force || asker.kind === 'operator') return;
  const what = ends(asker.application, asker.keyId);
  if (what !== undefined) throw refusal('own_access_would_end', `${what} ${FORCE}`);
};
