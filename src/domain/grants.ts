import { holds } from './authority';
import { permissionsOf } from './permissions';
import { refusal } from './refusal';
import type { DecisionContext, KeyHolder } from './tenant';

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
    { reason: 'permission_missing', permissions: missing },
  );
};

/** Without those that its type may not hold. */
export const effectivePermissions = (application: KeyHolder): readonly string[] =>
  application.permissions.filter((permission) => holds(application, permission));
