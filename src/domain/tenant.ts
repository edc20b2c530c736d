import type { TenantEvent, TenantSettings } from './events';
import { mustBeName } from './names';
import type { ApplicationType } from './permissions';
import { refusal } from './refusal';

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

/** An Application as far as its rights are concerned. */
export interface KeyHolder {
  readonly id: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
}

/** What decisions, read models and responses have of an Application. */
export interface ApplicationDocument extends KeyHolder, Modified {
  readonly name: string;
  /** The revision of the last event that changed the Application or its keys: its ETag. */
  readonly revision: number;
}

export interface Application extends ApplicationDocument {
  /** Its keys that are not revoked, by id, in the order in which they were added. */
  readonly keys: ReadonlyMap<string, UnrevokedKey>;
}

interface ExistingTenant extends Modified {
  readonly id: string;
  readonly ownerId: string;
  readonly name: string;
  readonly settings: TenantSettings;
  readonly includedMonthlyActiveTokens: number;
  /** The revision of the last event that changed the Tenant itself: its ETag. */
  readonly revision: number;
  /** In the order in which they were created. */
  readonly applications: ReadonlyMap<string, Application>;
  /** All keys that it ever had, by digest. */
  readonly keys: ReadonlyMap<string, Key>;
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

export const findKey = (
  { keys }: Pick<ActiveTenant, 'keys'>,
  isWanted: (key: Key) => boolean,
): Key | undefined => {
  for (const key of keys.values()) if (isWanted(key)) return key;
  return undefined;
};

export interface NewTenant {
  readonly name: string;
  readonly ownerId: string;
  readonly includedMonthlyActiveTokens: number;
}

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
