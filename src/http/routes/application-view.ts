import type { ApplicationDocument, KeyDocument } from '../../../projections/applications';
import { liveKeysOf } from '../../domain/grants';
import { applicationTypes } from '../../domain/permissions';
import type { ActiveTenant, Application, Key, Stamp } from '../../domain/tenant';
import type { Caused } from '../../ledger/ledger';
import { listOf, meaning, moment, record, text, uuid } from './schema';

/** What Applications and keys look like. Optional fields are left out when there is no value. */
export interface KeyView {
  readonly id: string;
  /** Only in the answer to the request that made it: it is kept nowhere. */
  readonly key?: string;
  readonly name?: string;
  readonly created_by?: string;
  readonly created_at: string;
  readonly expires_at?: string;
  readonly last_used_at?: string;
}

export interface ApplicationView {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly type: string;
  readonly permissions: readonly string[];
  readonly key?: string;
  readonly keys: readonly KeyView[];
  readonly created_by?: string;
  readonly created_at: string;
  readonly modified_by?: string;
  readonly modified_at?: string;
}

const KEY = 'The key itself, once: only the answer to the request that made it has it.';
const KEY_EXAMPLE = 'key_…';

export const keySchema = record(
  'ApplicationKey',
  {
    id: meaning(uuid, 'Of the key, which is not the key itself.'),
    key: meaning(text, KEY, KEY_EXAMPLE),
    name: meaning(text, 'What it is called.', 'Nightly import'),
    created_by: meaning(uuid, 'The user or the Application that created it.'),
    created_at: meaning(moment, 'When it was created.'),
    expires_at: meaning(moment, 'When it expires; left out: never.'),
    last_used_at: meaning(
      moment,
      'When it was last used, to about a minute; left out: never, or in the answer to a write.',
    ),
  },
  ['key', 'name', 'created_by', 'expires_at', 'last_used_at'],
);

export const applicationSchema = record(
  'Application',
  {
    id: meaning(uuid, 'Of the Application.'),
    tenant_id: meaning(uuid, 'The Tenant that it belongs to.'),
    name: meaning(text, 'What it is called.', 'Shop'),
    type: meaning({ type: 'string', enum: applicationTypes }, 'What kind of permissions it may hold.'),
    permissions: meaning(listOf(text), 'What it may do.'),
    key: meaning(text, KEY, KEY_EXAMPLE),
    keys: meaning(listOf(keySchema), 'Its keys that are neither revoked nor expired, oldest first.'),
    created_by: meaning(uuid, 'The user or the Application that created it.'),
    created_at: meaning(moment, 'When it was created.'),
    modified_by: meaning(uuid, 'The user or the Application that modified it last.'),
    modified_at: meaning(moment, 'When the request arrived that modified it last.'),
  },
  ['key', 'created_by', 'modified_by', 'modified_at'],
);

export const keyExample: KeyView = {
  id: 'bbbbbbbb-cccc-4ddd-8eee-ffffffffffff',
  name: 'Nightly import',
  created_by: '00000000-0000-0000-0000-000000000000',
  created_at: '2026-01-31T12:00:00.000Z',
  last_used_at: '2026-02-01T09:30:00.000Z',
};

export const applicationExample: ApplicationView = {
  id: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  tenant_id: '11111111-2222-4333-8444-555555555555',
  name: 'Shop',
  type: 'private',
  permissions: ['token:create', 'token:read'],
  keys: [keyExample],
  created_by: '00000000-0000-0000-0000-000000000000',
  created_at: '2026-01-31T12:00:00.000Z',
};

/** What is undefined does not stand in the JSON. */
type MaybeUndefined<T> = { [K in keyof T]: T[K] | undefined };

const keyPresent = (fields: MaybeUndefined<Required<KeyView>>): KeyView => fields as unknown as KeyView;
const present = (fields: MaybeUndefined<Required<ApplicationView>>): ApplicationView =>
  fields as unknown as ApplicationView;

export const keyOfDocument = (document: KeyDocument, lastUse: string | undefined): KeyView =>
  keyPresent({
    id: document.id,
    key: undefined,
    name: document.name,
    created_by: document.created_by,
    created_at: document.created_at,
    expires_at: document.expires_at,
    last_used_at: lastUse,
  });

export const applicationOfDocument = (
  tenantId: string,
  document: ApplicationDocument,
  keys: readonly KeyView[],
): ApplicationView =>
  present({
    id: document.id,
    tenant_id: tenantId,
    name: document.name,
    type: document.type,
    permissions: document.permissions,
    key: undefined,
    keys,
    created_by: document.created_by,
    created_at: document.created_at,
    modified_by: document.modified_by,
    modified_at: document.modified_at,
  });

const keyOf = ({ id, name, created, expiresAt }: Omit<Key, 'applicationId' | 'revoked'>): KeyView =>
  keyPresent({
    id,
    key: undefined,
    name,
    created_by: created.by,
    created_at: created.at,
    expires_at: expiresAt,
    last_used_at: undefined,
  });

const stampOf = ({ at, actor }: Caused): Stamp => (actor === undefined ? { at } : { at, by: actor.id });

export type KeyAdded = Extract<Caused, { readonly type: 'KeyAdded' }>;

export const keyOfEvent = (event: KeyAdded, key: string | undefined): KeyView => {
  const { keyId: id, ...data } = event.data;
  return { ...keyOf({ ...data, id, created: stampOf(event) }), ...(key === undefined ? {} : { key }) };
};

export const applicationOfTenant = (
  tenant: ActiveTenant,
  application: Application,
  at: string,
  key?: string,
): ApplicationView =>
  present({
    id: application.id,
    tenant_id: tenant.id,
    name: application.name,
    type: application.type,
    permissions: application.permissions,
    key,
    keys: liveKeysOf(tenant, application, at).map(keyOf),
    created_by: application.created.by,
    created_at: application.created.at,
    modified_by: application.modified?.by,
    modified_at: application.modified?.at,
  });

export type ApplicationCreated = Extract<Caused, { readonly type: 'ApplicationCreated' }>;

/** As it was created, whatever became of it. */
export const applicationOfEvents = (
  tenantId: string,
  created: ApplicationCreated,
  keyAdded: KeyAdded | undefined,
  key: string | undefined,
): ApplicationView => {
  const { applicationId, name, applicationType, permissions } = created.data;
  const { at, by } = stampOf(created);
  return present({
    id: applicationId,
    tenant_id: tenantId,
    name,
    type: applicationType,
    permissions,
    key,
    keys: keyAdded === undefined ? [] : [keyOfEvent(keyAdded, undefined)],
    created_by: by,
    created_at: at,
    modified_by: undefined,
    modified_at: undefined,
  });
};

/** An Application as an update left it, whatever became of it since. */
export const asUpdated = (application: Application, events: readonly Caused[]): Application => {
  let { name, permissions } = application;
  for (const event of events)
    if (event.type === 'ApplicationRenamed') ({ name } = event.data);
    else if (event.type === 'ApplicationPermissionsSet') ({ permissions } = event.data);
  const last = events.at(-1);
  if (last === undefined) return application;
  return { ...application, name, permissions, modified: stampOf(last), changedAt: last.revision };
};
