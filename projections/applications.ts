import { applicationAfter, keyAfter, noChanges, type AccessChanges } from '../src/domain/access-changes';
import type { KeyRecord } from '../src/domain/authority';
import type { ApplicationType } from '../src/domain/permissions';
import type { Key } from '../src/domain/tenant';
import { amend, change, type Projector, type Reader } from './projector';

/** The Applications of a tenant and their keys: what a read checks a key against. */
export interface ApplicationDocument {
  readonly id: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  readonly created_at: string;
  readonly modified_at?: string;
  readonly deleted_at?: string;
}

export interface KeyDocument {
  readonly id: string;
  readonly application_id: string;
  readonly digest: string;
  readonly created_at: string;
  readonly expires_at?: string;
  readonly revoked_at?: string;
}

/** Says that the whole tenant is gone, and with it every key. */
interface AccessDocument {
  readonly deleted_at: string;
}

const TENANT = 'tenant';

export const applications: Projector = {
  name: 'applications',
  version: 2,
  streams: ['tenant'],
  collections: [
    { name: 'applications', indexes: {} },
    { name: 'keys', indexes: { by_digest: ['digest'], by_application: ['application_id'] } },
    { name: 'access', indexes: {} },
  ],
  on: {
    TenantDeleted: (event) => [change<AccessDocument>('access', TENANT, () => ({ deleted_at: event.at }))],
    ApplicationCreated: (event) => [
      change<ApplicationDocument>('applications', event.data.applicationId, () => ({
        id: event.data.applicationId,
        name: event.data.name,
        type: event.data.applicationType,
        permissions: event.data.permissions,
        created_at: event.at,
      })),
    ],
    ApplicationRenamed: (event) => [
      amend<ApplicationDocument>('applications', event.data.applicationId, (application) => ({
        ...application,
        name: event.data.name,
        modified_at: event.at,
      })),
    ],
    ApplicationPermissionsSet: (event) => [
      amend<ApplicationDocument>('applications', event.data.applicationId, (application) => ({
        ...application,
        permissions: event.data.permissions,
        modified_at: event.at,
      })),
    ],
    ApplicationDeleted: (event) => [
      amend<ApplicationDocument>('applications', event.data.applicationId, (application) => ({
        ...application,
        deleted_at: event.at,
      })),
    ],
    KeyAdded: (event) => [
      change<KeyDocument>('keys', event.data.keyId, () => ({
        id: event.data.keyId,
        application_id: event.data.applicationId,
        digest: event.data.digest,
        created_at: event.at,
        ...(event.data.expiresAt === undefined ? {} : { expires_at: event.data.expiresAt }),
      })),
    ],
    KeyRevoked: (event) => [
      amend<KeyDocument>('keys', event.data.keyId, (key) => ({ ...key, revoked_at: event.at })),
    ],
  },
};

export const findApplication = async (
  reader: Reader,
  tenantId: string,
  applicationId: string,
): Promise<ApplicationDocument | undefined> =>
  (await reader.get(tenantId, 'applications', applicationId)) as ApplicationDocument | undefined;

const keyOf = ({
  id,
  application_id: applicationId,
  expires_at: expiresAt,
  revoked_at,
}: KeyDocument): Key => ({
  id,
  applicationId,
  revoked: revoked_at !== undefined,
  ...(expiresAt === undefined ? {} : { expiresAt }),
});

/**
 * What the read model says about a key and, where it is given, what the tenant's stream says since. Everything is read
 * after the call: none of it is older than that.
 */
export const findKeyRecord = async (
  reader: Reader,
  tenantId: string,
  digest: string,
  since: AccessChanges = noChanges,
): Promise<KeyRecord> => {
  const found = await reader.find(tenantId, 'keys', { index: 'by_digest', equal: [digest], limit: 1 });
  const document = found[0] as KeyDocument | undefined;
  const key = keyAfter(document === undefined ? undefined : keyOf(document), digest, since);
  if (key === undefined) return { key, application: undefined, isTenantDeleted: false };
  const [access, application] = await Promise.all([
    reader.get(tenantId, 'access', TENANT),
    findApplication(reader, tenantId, key.applicationId),
  ]);
  const isTenantDeleted = since.isTenantDeleted || access !== undefined;
  if (application?.deleted_at !== undefined) return { key, application: undefined, isTenantDeleted };
  return { key, application: applicationAfter(application, key.applicationId, since), isTenantDeleted };
};
