import { keyAdded, mustHaveRoomInAll, type NewKey } from './application-keys';
import { holds, isAssignable, mustHoldAll, permissionsOf } from './authority';
import type { TenantEvent } from './events';
import { permissions, type ApplicationType } from './permissions';
import { invalidValue, refusal } from './refusal';
import {
  findKey,
  mustBeActive,
  mustHave,
  QUOTAS,
  type ActiveTenant,
  type Application,
  type Decide,
} from './tenant';
import { mustBeName } from './texts';

const mustBeAssignable = (wanted: readonly string[], type: ApplicationType): void => {
  const assignable = permissionsOf(type).map((permission) => permission.type);
  const mayHold = `A ${type} Application may hold: ${assignable.join(', ')}.`;
  for (const permission of wanted) {
    if (isAssignable(permission, type)) continue;
    const isKnown = permissions.some((known) => known.type === permission);
    const what = isKnown
      ? `A ${type} Application may not hold ${permission}.`
      : `There is no permission ${permission}.`;
    throw invalidValue('permissions', `${what} ${mayHold}`);
  }
};

/**
 * Ids are never reused: under the id of a deleted Application its old keys would work again. Keys stay on record
 * forever, so they show which ids were used.
 */
const isIdUsed = (tenant: ActiveTenant, id: string): boolean =>
  tenant.applications.has(id) || findKey(tenant, ({ application_id }) => application_id === id) !== undefined;

export interface NewApplication {
  readonly applicationId: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  /** Left out: keys are added later. */
  readonly key?: NewKey;
}

export const createApplication =
  (input: NewApplication): Decide =>
  (now, context) => {
    const tenant = mustBeActive(now);
    mustBeName(input.name);
    mustBeAssignable(input.permissions, input.type);
    mustHoldAll(context, input.permissions, 'Granting this');
    if (isIdUsed(tenant, input.applicationId))
      throw refusal(
        'already_exists',
        `Application ${input.applicationId} already exists, or did before it was deleted.`,
      );
    if (tenant.applications.size >= QUOTAS.applications)
      throw refusal('quota_exceeded', `A tenant can have at most ${QUOTAS.applications} Applications.`);
    const { applicationId, name, type: applicationType, key } = input;
    const created: TenantEvent = {
      type: 'ApplicationCreated',
      data: { applicationId, name, applicationType, permissions: [...new Set(input.permissions)] },
    };
    if (key === undefined) return [created];
    mustHaveRoomInAll(tenant, context.at);
    return [created, keyAdded(tenant, applicationId, key, context)];
  };

/** Anything left out stays unchanged. */
export interface ApplicationUpdate {
  readonly name?: string | undefined;
  readonly permissions?: readonly string[] | undefined;
  /** Cannot be changed: if given, it must be the current type. */
  readonly type?: ApplicationType | undefined;
}

const mustBeSameType = (application: Application, { type = application.type }: ApplicationUpdate): void => {
  if (type === application.type) return;
  throw refusal(
    'application_type_fixed',
    `The type of an Application cannot be changed: this one is ${application.type}. Create another Application.`,
  );
};

const isSameSet = (wanted: readonly string[], held: readonly string[]): boolean =>
  wanted.length === held.length && wanted.every((permission) => held.includes(permission));

/** One event, even if nothing changes, since every update is recorded. */
export const updateApplication =
  (applicationId: string, update: ApplicationUpdate): Decide =>
  (now, context) => {
    const application = mustHave(mustBeActive(now), applicationId);
    mustBeSameType(application, update);
    const { name = application.name } = update;
    mustBeName(name);
    const held = application.permissions;
    const wanted = [...new Set(update.permissions ?? held)];
    if (update.permissions !== undefined) {
      mustBeAssignable(wanted, application.type);
      // The caller need not hold what the Application holds already.
      const added = wanted.filter((permission) => !holds(application, permission));
      mustHoldAll(context, added, 'Granting this');
    }
    const data = { applicationId, name, permissions: isSameSet(wanted, held) ? held : wanted };
    return [{ type: 'ApplicationUpdated', data }];
  };

/** Its keys stop working with it. */
export const deleteApplication =
  (applicationId: string): Decide =>
  (now) => {
    mustHave(mustBeActive(now), applicationId);
    return [{ type: 'ApplicationDeleted', data: { applicationId } }];
  };
