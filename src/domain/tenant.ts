import type { Recorded, TenantEvent, TenantSettings } from './events';
import { mustBeName } from './names';
import type { ApplicationType } from './permissions';
import { refusal } from './refusal';

export interface Stamp {
  readonly at: string;
  readonly by?: string;
}

export interface Application {
  readonly id: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
}

export interface Key {
  readonly id: string;
  readonly applicationId: string;
  readonly expiresAt?: string;
  readonly revoked: boolean;
}

interface Known {
  readonly id: string;
  readonly ownerId: string;
  readonly name: string;
  readonly settings: TenantSettings;
  readonly includedMonthlyActiveTokens: number;
  readonly created: Stamp;
  readonly modified?: Stamp;
  /** The revision of the last event that changed the Tenant itself: its ETag. */
  readonly changedAt: number;
  readonly applications: ReadonlyMap<string, Application>;
  /** By digest. */
  readonly keys: ReadonlyMap<string, Key>;
}

export type ActiveTenant = Known & { readonly status: 'active' };
export type Tenant = { readonly status: 'absent' } | ActiveTenant | (Known & { readonly status: 'deleted' });

/** A decision: what happens, given the present state of the tenant. It refuses by throwing a Refusal. */
export type Decide = (now: Tenant) => readonly TenantEvent[];

export const absent: Tenant = { status: 'absent' };

export const defaultSettings: TenantSettings = { fingerprintTokens: false, deduplicateTokens: false };

const stamp = (event: Recorded<TenantEvent>): Stamp =>
  event.actor === undefined ? { at: event.at } : { at: event.at, by: event.actor.id };

const withApplication = (now: Known, id: string, change: (app: Application) => Application): Known => {
  const application = now.applications.get(id);
  if (application === undefined) throw new Error(`Application ${id} does not exist.`);
  return { ...now, applications: new Map(now.applications).set(id, change(application)) };
};

const mustBe = (isSo: boolean, sentence: string): void => {
  if (!isSo) throw new Error(sentence);
};

const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> => {
  const rest = new Map(map);
  rest.delete(key);
  return rest;
};

const revoked = (keys: ReadonlyMap<string, Key>, keyId: string): ReadonlyMap<string, Key> =>
  new Map([...keys].map(([digest, key]) => [digest, key.id === keyId ? { ...key, revoked: true } : key]));

const createdTenant = (event: Extract<Recorded, { type: 'TenantCreated' }>): ActiveTenant => ({
  status: 'active',
  id: event.tenantId,
  ...event.data,
  created: stamp(event),
  changedAt: event.revision,
  applications: new Map(),
  keys: new Map(),
});

/** The state after one more event. An event that cannot follow the state throws: the stream is unreadable. */
export const evolve = (now: Tenant, event: Recorded<TenantEvent>): Tenant => {
  if (event.type === 'TenantCreated') {
    if (now.status !== 'absent') throw new Error('The tenant is created a second time.');
    return createdTenant(event);
  }
  if (now.status !== 'active') throw new Error(`A ${now.status} tenant cannot have the event ${event.type}.`);
  switch (event.type) {
    case 'TenantUpdated':
      return { ...now, ...event.data, modified: stamp(event), changedAt: event.revision };
    case 'TenantPlanChanged':
      return { ...now, ...event.data };
    case 'TenantDeleted':
      return { ...now, status: 'deleted' };
    case 'ApplicationCreated': {
      const { applicationId: id, name, applicationType: type, permissions } = event.data;
      mustBe(!now.applications.has(id), `Application ${id} is created a second time.`);
      return { ...now, applications: new Map(now.applications).set(id, { id, name, type, permissions }) };
    }
    case 'ApplicationRenamed':
      return {
        ...now,
        ...withApplication(now, event.data.applicationId, (app) => ({ ...app, name: event.data.name })),
      };
    case 'ApplicationPermissionsSet':
      return {
        ...now,
        ...withApplication(now, event.data.applicationId, (app) => ({
          ...app,
          permissions: event.data.permissions,
        })),
      };
    case 'ApplicationDeleted':
      mustBe(
        now.applications.has(event.data.applicationId),
        'An Application that does not exist is deleted.',
      );
      return { ...now, applications: without(now.applications, event.data.applicationId) };
    case 'KeyAdded': {
      const { keyId: id, applicationId, digest, expiresAt } = event.data;
      mustBe(now.applications.has(applicationId), 'A key is added to an Application that does not exist.');
      const key = { id, applicationId, revoked: false, ...(expiresAt === undefined ? {} : { expiresAt }) };
      return { ...now, keys: new Map(now.keys).set(digest, key) };
    }
    case 'KeyRevoked':
      return { ...now, keys: revoked(now.keys, event.data.keyId) };
  }
};

/** The first line of nearly every decision: the tenant must be there. */
export const mustBeActive = (now: Tenant): ActiveTenant => {
  if (now.status === 'absent') throw refusal('tenant_not_found', 'There is no such tenant.');
  if (now.status === 'deleted') throw refusal('tenant_deleted', `Tenant ${now.id} is deleted.`);
  return now;
};

export interface NewTenant {
  readonly name: string;
  readonly ownerId: string;
  readonly includedMonthlyActiveTokens: number;
}

export const createTenant =
  (wish: NewTenant): Decide =>
  (now) => {
    if (now.status !== 'absent') throw refusal('tenant_exists', 'A tenant with this id exists already.');
    mustBeName(wish.name);
    return [{ type: 'TenantCreated', data: { ...wish, settings: defaultSettings } }];
  };

export interface TenantWish {
  readonly name: string;
  readonly settings: Partial<TenantSettings>;
}

export const updateTenant =
  (wish: TenantWish): Decide =>
  (now) => {
    const tenant = mustBeActive(now);
    mustBeName(wish.name);
    return [
      {
        type: 'TenantUpdated',
        data: { name: wish.name, settings: { ...tenant.settings, ...wish.settings } },
      },
    ];
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
