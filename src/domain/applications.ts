import { isExpired } from './authority';
import type { TenantEvent } from './events';
import { mustBeName } from './names';
import { isAssignable, permissions, permissionsOf, type ApplicationType } from './permissions';
import { refusal } from './refusal';
import { mustBeActive, type ActiveTenant, type Application, type Decide } from './tenant';

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

export const mustHave = (tenant: ActiveTenant, applicationId: string): Application => {
  const application = tenant.applications.get(applicationId);
  if (application === undefined)
    throw refusal('application_not_found', `Tenant ${tenant.id} has no Application ${applicationId}.`);
  return application;
};

/** An id is used once, also after a deletion, or the deleted one's keys would come back to life. Keys are never forgotten. */
const wasThere = (tenant: ActiveTenant, applicationId: string): boolean =>
  tenant.applications.has(applicationId) ||
  [...tenant.keys.values()].some((key) => key.applicationId === applicationId);

export interface NewKey {
  readonly keyId: string;
  readonly digest: string;
  readonly expiresAt?: string;
  /** When it was asked for. A key must not be born expired. */
  readonly at: string;
}

const keyAdded = (tenant: ActiveTenant, applicationId: string, key: NewKey): TenantEvent => {
  const { keyId, digest, expiresAt } = key;
  if (tenant.keys.has(digest)) throw refusal('key_exists', 'This key exists already.');
  if (isExpired(expiresAt, key.at))
    throw refusal('expiry_invalid', `The expiry ${expiresAt} is not in the future.`);
  return {
    type: 'KeyAdded',
    data: { keyId, applicationId, digest, ...(expiresAt === undefined ? {} : { expiresAt }) },
  };
};

export interface NewApplication {
  readonly applicationId: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  readonly key: NewKey;
}

/** An Application is born with its first key, in one step. */
export const createApplication =
  (input: NewApplication): Decide =>
  (now) => {
    const tenant = mustBeActive(now);
    mustBeName(input.name);
    mustBeAssignable(input.permissions, input.type);
    if (wasThere(tenant, input.applicationId))
      throw refusal(
        'application_exists',
        `Application ${input.applicationId} exists already, or has existed.`,
      );
    const { applicationId, name, type: applicationType } = input;
    return [
      {
        type: 'ApplicationCreated',
        data: { applicationId, name, applicationType, permissions: [...new Set(input.permissions)] },
      },
      keyAdded(tenant, applicationId, input.key),
    ];
  };

export const renameApplication =
  (applicationId: string, name: string): Decide =>
  (now) => {
    mustHave(mustBeActive(now), applicationId);
    mustBeName(name);
    return [{ type: 'ApplicationRenamed', data: { applicationId, name } }];
  };

export const setPermissions =
  (applicationId: string, wanted: readonly string[]): Decide =>
  (now) => {
    const application = mustHave(mustBeActive(now), applicationId);
    mustBeAssignable(wanted, application.type);
    return [
      { type: 'ApplicationPermissionsSet', data: { applicationId, permissions: [...new Set(wanted)] } },
    ];
  };

export const deleteApplication =
  (applicationId: string): Decide =>
  (now) => {
    mustHave(mustBeActive(now), applicationId);
    return [{ type: 'ApplicationDeleted', data: { applicationId } }];
  };

export const addKey =
  (applicationId: string, key: NewKey): Decide =>
  (now) => {
    const tenant = mustBeActive(now);
    mustHave(tenant, applicationId);
    return [keyAdded(tenant, applicationId, key)];
  };

export const revokeKey =
  (keyId: string): Decide =>
  (now) => {
    const tenant = mustBeActive(now);
    const key = [...tenant.keys.values()].find((known) => known.id === keyId);
    if (key === undefined) throw refusal('key_not_found', `Tenant ${tenant.id} has no key ${keyId}.`);
    if (key.revoked) throw refusal('key_already_revoked', `Key ${keyId} is revoked already.`);
    return [{ type: 'KeyRevoked', data: { keyId, applicationId: key.applicationId } }];
  };
