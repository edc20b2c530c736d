import type { Caused } from '../src/domain/events';
import { canonicalTime } from '../src/domain/moment';
import type { ApplicationType } from '../src/domain/permissions';
import type { Application, UnrevokedKey } from '../src/domain/tenant';
import { amend, by, change, type Projector, type Reader } from './projector';

/** The Applications of a tenant and their keys. */
export interface ApplicationDocument {
  readonly id: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  readonly created_by?: string | undefined;
  readonly created_at: string;
  readonly modified_by?: string | undefined;
  readonly modified_at?: string | undefined;
  readonly deleted_at?: string;
  /** The revision of the last event that changed the Application or its keys: its ETag. */
  readonly revision: number;
  /** The revision of the event that created it, unless it is deleted. Applications are listed in this order. */
  readonly listed_at?: number;
}

export interface KeyDocument {
  readonly id: string;
  readonly application_id: string;
  readonly name?: string | undefined;
  readonly created_by?: string | undefined;
  readonly created_at: string;
  readonly expires_at?: string | undefined;
  readonly revoked_at?: string | undefined;
  /** The Application's id again, unless the key is revoked. It indexes the keys that are not. */
  readonly live_in?: string;
  /** When it expires, in the canonical form that sorts as text. */
  readonly ends_at: string;
}

const NEVER = '9999-12-31T23:59:59.999Z';

const endsAt = (expiresAt: string | undefined): Pick<KeyDocument, 'expires_at' | 'ends_at'> =>
  expiresAt === undefined ? { ends_at: NEVER } : { expires_at: expiresAt, ends_at: canonicalTime(expiresAt) };

export const applicationAsCreated = (event: Caused<'ApplicationCreated'>): ApplicationDocument => ({
  id: event.data.applicationId,
  name: event.data.name,
  type: event.data.applicationType,
  permissions: event.data.permissions,
  ...by('created_by', event),
  created_at: event.at,
  revision: event.revision,
  listed_at: event.revision,
});

export const keyAsAdded = (event: Caused<'KeyAdded'>): KeyDocument => ({
  id: event.data.keyId,
  application_id: event.data.applicationId,
  ...(event.data.name === undefined ? {} : { name: event.data.name }),
  ...by('created_by', event),
  created_at: event.at,
  ...endsAt(event.data.expiresAt),
  live_in: event.data.applicationId,
});

/** The documents that the read model, which may lag behind, will have for this state of an Application. */
export const documentOfApplication = ({
  id,
  name,
  type,
  permissions,
  created,
  modified,
  changedAt,
}: Application): ApplicationDocument => ({
  id,
  name,
  type,
  permissions,
  created_by: created.by,
  created_at: created.at,
  modified_by: modified?.by,
  modified_at: modified?.at,
  revision: changedAt,
});

export const documentOfKey = ({
  id,
  applicationId,
  name,
  created,
  expiresAt,
}: UnrevokedKey): KeyDocument => ({
  id,
  application_id: applicationId,
  name,
  created_by: created.by,
  created_at: created.at,
  ...endsAt(expiresAt),
  live_in: applicationId,
});

const keysChanged = ({ data, revision }: Caused<'KeyAdded' | 'KeyExpirySet' | 'KeyRevoked'>) =>
  amend<ApplicationDocument>('applications', data.applicationId, (application) => ({
    ...application,
    revision,
  }));

export const applications: Projector = {
  name: 'applications',
  version: 2,
  streams: ['tenant'],
  collections: [
    { name: 'applications', indexes: { listed: ['listed_at'] } },
    { name: 'keys', indexes: { live: ['live_in', 'ends_at'] } },
  ],
  on: {
    ApplicationCreated: (event) => [
      change<ApplicationDocument>('applications', event.data.applicationId, () =>
        applicationAsCreated(event),
      ),
    ],
    ApplicationUpdated: (event) => [
      amend<ApplicationDocument>(
        'applications',
        event.data.applicationId,
        ({ modified_by: _former, ...application }) => ({
          ...application,
          name: event.data.name,
          permissions: event.data.permissions,
          ...by('modified_by', event),
          modified_at: event.at,
          revision: event.revision,
        }),
      ),
    ],
    ApplicationDeleted: (event) => [
      amend<ApplicationDocument>(
        'applications',
        event.data.applicationId,
        ({ listed_at: _former, ...application }) => ({ ...application, deleted_at: event.at }),
      ),
    ],
    KeyAdded: (event) => [
      change<KeyDocument>('keys', event.data.keyId, () => keyAsAdded(event)),
      keysChanged(event),
    ],
    KeyExpirySet: (event) => [
      amend<KeyDocument>('keys', event.data.keyId, (key) => ({ ...key, ...endsAt(event.data.expiresAt) })),
      keysChanged(event),
    ],
    KeyRevoked: (event) => [
      amend<KeyDocument>('keys', event.data.keyId, ({ live_in: _former, ...key }) => ({
        ...key,
        revoked_at: event.at,
      })),
      keysChanged(event),
    ],
  },
};

export const findApplication = async (
  reader: Reader,
  tenantId: string,
  applicationId: string,
): Promise<ApplicationDocument | undefined> =>
  (await reader.get(tenantId, 'applications', applicationId)) as ApplicationDocument | undefined;
