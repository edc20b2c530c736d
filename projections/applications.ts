import type { Caused } from '../src/domain/events';
import {
  applicationAsCreated,
  applicationAsUpdated,
  keyAsAdded,
  type ApplicationDocument,
  type KeyDocument,
} from '../src/domain/tenant';
import { canonicalTime } from '../src/domain/texts';
import { amend, change, type Projector, type Reader } from './projector';

/** The Applications of a tenant, including deleted ones. */
export interface StoredApplication extends ApplicationDocument {
  readonly deleted_at?: string;
  /** The revision of the event that created it, unless it is deleted. Applications are listed in this order. */
  readonly listed_at?: number;
}

/** Their keys, including revoked ones. */
export interface StoredKey extends KeyDocument {
  readonly revoked_at?: string | undefined;
  /** The Application's id again, unless the key is revoked. It indexes the keys that are not. */
  readonly live_in?: string;
  /** When it expires, in the canonical form that sorts as text. */
  readonly ends_at: string;
}

const NEVER = '9999-12-31T23:59:59.999Z';

const endsAt = (expiresAt: string | undefined): string =>
  expiresAt === undefined ? NEVER : canonicalTime(expiresAt);

const changed = (id: string, next: (application: StoredApplication) => StoredApplication) =>
  amend<StoredApplication>('applications', id, next);

const keysChanged = ({ data, revision }: Caused<'KeyAdded' | 'KeyExpirySet' | 'KeyRevoked'>) =>
  changed(data.applicationId, (application) => ({ ...application, revision }));

export const applications: Projector = {
  name: 'applications',
  version: 2,
  collections: [
    { name: 'applications', indexes: { listed: ['listed_at'] } },
    { name: 'keys', indexes: { live: ['live_in', 'ends_at'] } },
  ],
  on: {
    ApplicationCreated: (event) => [
      change<StoredApplication>('applications', event.data.applicationId, () => ({
        ...applicationAsCreated(event),
        listed_at: event.revision,
      })),
    ],
    ApplicationUpdated: (event) => [
      changed(event.data.applicationId, (application) => applicationAsUpdated(application, event)),
    ],
    ApplicationDeleted: ({ data, at }) => [
      changed(data.applicationId, ({ listed_at: _former, ...now }) => ({ ...now, deleted_at: at })),
    ],
    KeyAdded: (event) => [
      change<StoredKey>('keys', event.data.keyId, () => ({
        ...keyAsAdded(event),
        live_in: event.data.applicationId,
        ends_at: endsAt(event.data.expiresAt),
      })),
      keysChanged(event),
    ],
    KeyExpirySet: (event) => [
      amend<StoredKey>('keys', event.data.keyId, (key) => ({
        ...key,
        expires_at: event.data.expiresAt,
        ends_at: endsAt(event.data.expiresAt),
      })),
      keysChanged(event),
    ],
    KeyRevoked: (event) => [
      amend<StoredKey>('keys', event.data.keyId, ({ live_in: _former, ...key }) => ({
        ...key,
        revoked_at: event.at,
      })),
      keysChanged(event),
    ],
  },
};

export const findApplication = async (reader: Reader, tenantId: string, applicationId: string) =>
  (await reader.get(tenantId, 'applications', applicationId)) as StoredApplication | undefined;
