import { keyAdded, type NewKey } from './application-keys';
import { holds } from './authority';
import type { TenantEvent } from './events';
import { effectivePermissions, mustHoldAll, mustKeepManager, requireForce } from './grants';
import { findKey } from './keys';
import { mustBeName } from './names';
import { isAssignable, permissions, permissionsOf, type ApplicationType } from './permissions';
import { refusal } from './refusal';
import { mustBeActive, mustHave, type ActiveTenant, type Application, type Decide } from './tenant';

const mustBeAssignable = (wanted: readonly string[], type: ApplicationType): void => {
  const assignable = permissionsOf(type).map((permission) => permission.type);
  const mayHold = `A ${type} Application may hold: ${assignable.join(', ')}.`;
  for (const permission of wanted) {
    if (!permissions.some((known) => known.type === permission))
      throw refusal('permission_unknown', `There is no permission ${permission}. ${mayHold}`, { assignable });
    if (!isAssignable(permission, type))
      throw refusal(
        'permission_not_assignable',
        `A ${type} Application may not hold ${permission}. ${mayHold}`,
        { assignable },
      );
  }
};

/** An id is used once, also after a deletion, or the deleted one's keys would come back to life. Keys are never forgotten. */
const wasThere = (tenant: ActiveTenant, id: string): boolean =>
  tenant.applications.has(id) ||
  findKey(tenant.keys, ({ applicationId }) => applicationId === id) !== undefined;

export interface NewApplication {
  readonly applicationId: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  /** Left out: it gets its keys later. */
  readonly key?: NewKey;
}

/** An Application is created with its first key, in one step. */
export const createApplication =
  (input: NewApplication): Decide =>
  (now, context) => {
    const tenant = mustBeActive(now);
    const { bounds } = context;
    mustBeName(input.name);
    mustBeAssignable(input.permissions, input.type);
    mustHoldAll(context, input.permissions, 'Granting this');
    if (wasThere(tenant, input.applicationId))
      throw refusal(
        'application_exists',
        `Application ${input.applicationId} exists already, or has existed.`,
      );
    if (tenant.applications.size >= bounds.applications)
      throw refusal('too_many_applications', `A tenant has at most ${bounds.applications} Applications.`);
    const { applicationId, name, type: applicationType, key } = input;
    const created: TenantEvent = {
      type: 'ApplicationCreated',
      data: { applicationId, name, applicationType, permissions: [...new Set(input.permissions)] },
    };
    return key === undefined ? [created] : [created, keyAdded(tenant, applicationId, key)];
  };

/** What is left out stays as it is. */
export interface ApplicationUpdate {
  readonly name?: string;
  readonly permissions?: readonly string[];
  /** It cannot be changed, but named. */
  readonly type?: ApplicationType;
  readonly force?: boolean;
}

const mustBeSameType = (application: Application, { type = application.type }: ApplicationUpdate): void => {
  if (type === application.type) return;
  throw refusal(
    'application_type_fixed',
    `The type of an Application cannot be changed: this one is ${application.type}. Create another one.`,
  );
};

const isSame = (wanted: readonly string[], held: readonly string[]): boolean =>
  wanted.length === held.length && wanted.every((permission) => held.includes(permission));

/** Only what is added is granted: whoever renames an Application need not hold what it holds. */
const mustBeGrantable = (
  tenant: ActiveTenant,
  application: Application,
  wanted: readonly string[],
  ...[context, force]: [Parameters<Decide>[1], boolean]
): void => {
  mustBeAssignable(wanted, application.type);
  const added = wanted.filter((permission) => !holds(application, permission));
  mustHoldAll(context, added, 'Granting this');
  const lost = effectivePermissions(application).filter((permission) => !wanted.includes(permission));
  requireForce(context, {
    force,
    ends: ({ id }) =>
      id === application.id && lost.length > 0
        ? `This takes ${lost.join(', ')} from the key that asks for it, which could not give it back.`
        : undefined,
  });
  const remains = { ...application, permissions: wanted };
  const isLost = ({ id }: Application) => id === application.id && !holds(remains, 'application:update');
  mustKeepManager(tenant, context, { force, isLost });
};

/** One event for each that changes; a new name alone where nothing does: somebody asked for it. */
export const updateApplication =
  (applicationId: string, update: ApplicationUpdate): Decide =>
  (now, context) => {
    const tenant = mustBeActive(now);
    const application = mustHave(tenant, applicationId);
    mustBeSameType(application, update);
    const { name = application.name, force = false } = update;
    mustBeName(name);
    const wanted = [...new Set(update.permissions ?? application.permissions)];
    if (update.permissions !== undefined) mustBeGrantable(tenant, application, wanted, context, force);
    const renamed: TenantEvent = { type: 'ApplicationRenamed', data: { applicationId, name } };
    const permitted: TenantEvent = {
      type: 'ApplicationPermissionsSet',
      data: { applicationId, permissions: wanted },
    };
    const sets = update.name === undefined || !isSame(wanted, application.permissions);
    return [...(name !== application.name || !sets ? [renamed] : []), ...(sets ? [permitted] : [])];
  };

/** Its keys end with it. */
export const deleteApplication =
  (applicationId: string, { force = false } = {}): Decide =>
  (now, context) => {
    const tenant = mustBeActive(now);
    mustHave(tenant, applicationId);
    requireForce(context, {
      force,
      ends: ({ id }) =>
        id === applicationId ? 'This deletes the Application whose key asks for it.' : undefined,
    });
    mustKeepManager(tenant, context, { force, isLost: ({ id }) => id === applicationId });
    return [{ type: 'ApplicationDeleted', data: { applicationId } }];
  };
