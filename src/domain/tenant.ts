import type { Caused, TenantEvent, TenantSettings } from './events';
import type { ApplicationType } from './permissions';
import { refusal } from './refusal';
import { mustBeName } from './texts';

/** Who did something, and when. Named as in documents, because that is where it is stored and shown. */
interface Created {
  readonly created_by?: string | undefined;
  readonly created_at: string;
}

interface Modified extends Created {
  readonly modified_by?: string | undefined;
  readonly modified_at?: string | undefined;
}

/** What decisions, read models and responses have of a key. */
export interface KeyDocument extends Created {
  readonly id: string;
  readonly application_id: string;
  readonly name?: string | undefined;
  readonly expires_at?: string | undefined;
}

/** A key that is not revoked. It may have expired, or have lost its Application. */
export interface UnrevokedKey extends KeyDocument {
  readonly revoked: false;
  readonly digest: string;
}

/** What stays of a revoked key: enough to refuse it, to say whose it was, and to use no id twice. */
export interface RevokedKey extends Pick<KeyDocument, 'id' | 'application_id'> {
  readonly revoked: true;
}

export type Key = UnrevokedKey | RevokedKey;

/** An Application as far as its rights are concerned, and what it is called. */
export interface KeyHolder {
  readonly id: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
}

/** What decisions, read models and responses have of an Application. */
export interface ApplicationDocument extends KeyHolder, Modified {
  /** The revision of the last event that changed the Application or its keys: its ETag. */
  readonly revision: number;
}

export interface Application extends ApplicationDocument {
  /** Its keys that are not revoked, by id, in the order in which they were added. */
  readonly keys: Map<string, UnrevokedKey>;
}

/** `evolve` alone changes the maps. */
interface ExistingTenant extends Modified {
  readonly id: string;
  readonly ownerId: string;
  readonly name: string;
  readonly settings: TenantSettings;
  readonly includedMonthlyActiveTokens: number;
  /** The revision of the last event that changed the Tenant itself: its ETag. */
  readonly revision: number;
  /** In the order in which they were created. */
  readonly applications: Map<string, Application>;
  /** All keys that it ever had, by digest. */
  readonly keys: Map<string, Key>;
}

export type ActiveTenant = ExistingTenant & { readonly status: 'active' };
export type DeletedTenant = ExistingTenant & { readonly status: 'deleted' };
export type Tenant = { readonly status: 'absent' } | ActiveTenant | DeletedTenant;

/** Who requests a decision: the operator, who may do everything, or an Application. */
export type Requester =
  { readonly kind: 'operator' } | { readonly kind: 'application'; readonly application: KeyHolder };

/** How much a tenant may have. */
export const QUOTAS = {
  applications: 1_000,
  /** Per Application, neither revoked nor expired. */
  liveKeys: 100,
  /** Of all its Applications. */
  liveKeysInAll: 5_000,
};

/** What a decision may depend on besides the state of the tenant. */
export interface DecisionContext {
  readonly requester: Requester;
  /** When it was requested, ISO 8601. */
  readonly at: string;
}

/** Decides which events follow from the current state of the tenant, or throws a Refusal. */
export type Decide = (now: Tenant, context: DecisionContext) => readonly TenantEvent[];

export const absent: Tenant = { status: 'absent' };

export const mustBeActive = (now: Tenant): ActiveTenant => {
  if (now.status === 'absent') throw refusal('tenant_not_found', 'There is no such tenant.');
  if (now.status === 'deleted') throw refusal('tenant_deleted', `Tenant ${now.id} is deleted.`);
  return now;
};

export const mustHave = (tenant: ActiveTenant, applicationId: string): Application => {
  const application = tenant.applications.get(applicationId);
  if (application === undefined)
    throw refusal('application_not_found', `Tenant ${tenant.id} has no Application ${applicationId}.`);
  return application;
};

export const findKey = ({ keys }: Pick<ActiveTenant, 'keys'>, isWanted: (key: Key) => boolean) => {
  for (const key of keys.values()) if (isWanted(key)) return key;
  return undefined;
};

export type NewTenant = Pick<ExistingTenant, 'name' | 'ownerId' | 'includedMonthlyActiveTokens'>;

export const createTenant =
  (input: NewTenant): Decide =>
  (now) => {
    if (now.status !== 'absent') throw refusal('already_exists', 'A tenant with this id already exists.');
    mustBeName(input.name);
    const settings: TenantSettings = { fingerprintTokens: false, deduplicateTokens: false };
    return [{ type: 'TenantCreated', data: { ...input, settings } }];
  };

export interface TenantUpdate {
  readonly name: string;
  readonly settings: Partial<TenantSettings>;
}

export const updateTenant =
  (input: TenantUpdate): Decide =>
  (now) => {
    const tenant = mustBeActive(now);
    mustBeName(input.name);
    const settings = { ...tenant.settings, ...input.settings };
    return [{ type: 'TenantUpdated', data: { name: input.name, settings } }];
  };

export const changePlan =
  (includedMonthlyActiveTokens: number): Decide =>
  (now) => {
    mustBeActive(now);
    return [{ type: 'TenantPlanChanged', data: { includedMonthlyActiveTokens } }];
  };

export const deleteTenant = (): Decide => (now) => {
  mustBeActive(now);
  return [{ type: 'TenantDeleted', data: {} }];
};

export const tenantAsCreated = (event: Caused<'TenantCreated'>): ActiveTenant => ({
  ...event.data,
  status: 'active',
  id: event.tenantId,
  created_by: event.actor?.id,
  created_at: event.at,
  revision: event.revision,
  applications: new Map(),
  keys: new Map(),
});

export const applicationAsCreated = (event: Caused<'ApplicationCreated'>): ApplicationDocument => ({
  id: event.data.applicationId,
  name: event.data.name,
  type: event.data.applicationType,
  permissions: event.data.permissions,
  created_by: event.actor?.id,
  created_at: event.at,
  revision: event.revision,
});

export const applicationAsUpdated = <A extends ApplicationDocument>(
  application: A,
  { data: { name, permissions }, at, actor, revision }: Caused<'ApplicationUpdated'>,
): A => ({ ...application, name, permissions, modified_by: actor?.id, modified_at: at, revision });

export const keyAsAdded = ({ data, at, actor }: Caused<'KeyAdded'>): KeyDocument => ({
  id: data.keyId,
  application_id: data.applicationId,
  name: data.name,
  created_by: actor?.id,
  created_at: at,
  expires_at: data.expiresAt,
});

const createApplication = (now: ActiveTenant, event: Caused<'ApplicationCreated'>): void => {
  const application = applicationAsCreated(event);
  if (now.applications.has(application.id))
    throw new Error(`Application ${application.id} is created a second time.`);
  now.applications.set(application.id, { ...application, keys: new Map() });
};

const changeApplication = (now: ActiveTenant, application: Application): void =>
  void now.applications.set(application.id, application);

const addKey = (now: ActiveTenant, event: Caused<'KeyAdded'>): void => {
  const { digest, applicationId } = event.data;
  const application = mustHave(now, applicationId);
  // The id of the Application is not the text in the event, of which there would be one per key.
  const key = { ...keyAsAdded(event), application_id: application.id, revoked: false, digest } as const;
  now.keys.set(digest, key);
  application.keys.set(key.id, key);
  changeApplication(now, { ...application, revision: event.revision });
};

const changeExpiry = (now: ActiveTenant, event: Caused<'KeyExpirySet'>): void => {
  const { applicationId, keyId, expiresAt } = event.data;
  const application = now.applications.get(applicationId);
  const key = application?.keys.get(keyId);
  if (application === undefined || key === undefined) return;
  const changed = { ...key, expires_at: expiresAt };
  now.keys.set(key.digest, changed);
  application.keys.set(keyId, changed);
  changeApplication(now, { ...application, revision: event.revision });
};

/** The key of a deleted Application is only found among all keys of the tenant. */
const revokeKey = (now: ActiveTenant, event: Caused<'KeyRevoked'>): void => {
  const { applicationId, keyId } = event.data;
  const application = now.applications.get(applicationId);
  const key = application?.keys.get(keyId) ?? findKey(now, ({ id }) => id === keyId);
  if (key === undefined || key.revoked) return;
  now.keys.set(key.digest, { id: key.id, application_id: key.application_id, revoked: true });
  if (application === undefined) return;
  application.keys.delete(keyId);
  changeApplication(now, { ...application, revision: event.revision });
};

type CausedLater = Exclude<Caused, { readonly type: 'TenantCreated' }>;

const evolveActive = (now: ActiveTenant, event: CausedLater): ActiveTenant | DeletedTenant => {
  switch (event.type) {
    case 'TenantUpdated': {
      const { name, settings } = event.data;
      const modified = { modified_by: event.actor?.id, modified_at: event.at, revision: event.revision };
      return { ...now, name, settings, ...modified };
    }
    case 'TenantPlanChanged':
      return { ...now, includedMonthlyActiveTokens: event.data.includedMonthlyActiveTokens };
    case 'TenantDeleted':
      return { ...now, status: 'deleted' };
    case 'ApplicationCreated':
      createApplication(now, event);
      return now;
    case 'ApplicationUpdated':
      changeApplication(now, applicationAsUpdated(mustHave(now, event.data.applicationId), event));
      return now;
    case 'ApplicationDeleted':
      now.applications.delete(mustHave(now, event.data.applicationId).id);
      return now;
    case 'KeyAdded':
      addKey(now, event);
      return now;
    case 'KeyExpirySet':
      changeExpiry(now, event);
      return now;
    case 'KeyRevoked':
      revokeKey(now, event);
      return now;
  }
};

/**
 * The tenant after an event. It takes the maps of the tenant before it over and changes them, so that one must not be
 * used any more. Throws if the event is impossible: then the stream is unreadable.
 */
export const evolve = (now: Tenant, event: Caused): Tenant => {
  if (event.type === 'TenantCreated') {
    if (now.status !== 'absent') throw new Error('The tenant is created a second time.');
    return tenantAsCreated(event);
  }
  if (now.status === 'active') return evolveActive(now, event);
  throw new Error(`The tenant is ${now.status}, so it cannot have the event ${event.type}.`);
};

/** A copy to evolve by these events. Of the Applications and their keys it has only what they are about. */
export const copyFor = (events: readonly TenantEvent[], now: Tenant): Tenant => {
  if (now.status === 'absent') return now;
  const applications = new Map<string, Application>();
  for (const { data } of events) {
    const application = 'applicationId' in data ? now.applications.get(data.applicationId) : undefined;
    if (application === undefined || applications.has(application.id)) continue;
    applications.set(application.id, { ...application, keys: new Map(application.keys) });
  }
  return { ...now, applications, keys: new Map() };
};
