import type { KeyHolder } from './authority';
import type { TenantEvent } from './events';
import type { KeyState } from './tenant';

/** What a range of a tenant's stream changes about its keys and Applications, independent of the events before it. */
export interface AccessChanges {
  /** Added keys, by digest. */
  readonly keys: ReadonlyMap<string, KeyState>;
  /** Ids of keys. */
  readonly revoked: ReadonlySet<string>;
  /** The last expiry set, by key id. */
  readonly expiries: ReadonlyMap<string, string>;
  readonly applications: ReadonlyMap<string, KeyHolder>;
  /** The last permissions set, by Application id. */
  readonly permissions: ReadonlyMap<string, readonly string[]>;
  readonly deletedApplications: ReadonlySet<string>;
  readonly isTenantDeleted: boolean;
}

export const noChanges: AccessChanges = {
  keys: new Map(),
  revoked: new Set(),
  expiries: new Map(),
  applications: new Map(),
  permissions: new Map(),
  deletedApplications: new Set(),
  isTenantDeleted: false,
};

export const changesAfter = (before: AccessChanges, events: readonly TenantEvent[]): AccessChanges => {
  const keys = new Map(before.keys);
  const revoked = new Set(before.revoked);
  const expiries = new Map(before.expiries);
  const applications = new Map(before.applications);
  const permissions = new Map(before.permissions);
  const deletedApplications = new Set(before.deletedApplications);
  let { isTenantDeleted } = before;
  for (const event of events)
    switch (event.type) {
      case 'ApplicationCreated': {
        const { applicationId: id, applicationType: type } = event.data;
        applications.set(id, { id, type, permissions: event.data.permissions });
        break;
      }
      case 'ApplicationPermissionsSet':
        permissions.set(event.data.applicationId, event.data.permissions);
        break;
      case 'ApplicationDeleted':
        deletedApplications.add(event.data.applicationId);
        break;
      case 'KeyAdded': {
        const { keyId: id, applicationId, digest, expiresAt } = event.data;
        const expiry = expiresAt === undefined ? {} : { expiresAt };
        keys.set(digest, { id, applicationId, revoked: false, ...expiry });
        break;
      }
      case 'KeyRevoked':
        revoked.add(event.data.keyId);
        break;
      case 'KeyExpirySet':
        expiries.set(event.data.keyId, event.data.expiresAt);
        break;
      case 'TenantDeleted':
        isTenantDeleted = true;
        break;
      case 'TenantCreated':
      case 'TenantUpdated':
      case 'TenantPlanChanged':
      case 'ApplicationRenamed':
        break;
    }
  return { keys, revoked, expiries, applications, permissions, deletedApplications, isTenantDeleted };
};

/** The key with the changes applied to what was known before. Revocation is final. */
export const keyAfter = (
  known: KeyState | undefined,
  digest: string,
  changes: AccessChanges,
): KeyState | undefined => {
  const key = changes.keys.get(digest) ?? known;
  if (key === undefined) return undefined;
  const isRevoked = key.revoked || known?.revoked === true || changes.revoked.has(key.id);
  const expiresAt = changes.expiries.get(key.id) ?? known?.expiresAt ?? key.expiresAt;
  if (isRevoked === key.revoked && expiresAt === key.expiresAt) return key;
  return { ...key, revoked: isRevoked, ...(expiresAt === undefined ? {} : { expiresAt }) };
};

/** The same for an Application. Undefined: it does not exist, or is deleted. */
export const applicationAfter = (
  known: KeyHolder | undefined,
  id: string,
  changes: AccessChanges,
): KeyHolder | undefined => {
  const application = changes.applications.get(id) ?? known;
  if (application === undefined || changes.deletedApplications.has(id)) return undefined;
  const permissions = changes.permissions.get(id);
  return permissions === undefined ? application : { ...application, permissions };
};
