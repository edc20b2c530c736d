import type { Caused, Circumstances, TenantEvent } from './events';
import {
  findKey,
  mustHave,
  type ActiveTenant,
  type Application,
  type DeletedTenant,
  type Stamp,
  type Tenant,
  type UnrevokedKey,
} from './tenant';

const stampOf = ({ at, actor }: Pick<Circumstances, 'at' | 'actor'>): Stamp =>
  actor === undefined ? { at } : { at, by: actor.id };

const mustBe = (condition: boolean, message: string): void => {
  if (!condition) throw new Error(message);
};

/** Only this file changes the maps of a tenant. */
const mutable = <K, V>(map: ReadonlyMap<K, V>): Map<K, V> => map as Map<K, V>;

const createdTenant = (event: Caused<'TenantCreated'>): ActiveTenant => ({
  ...event.data,
  status: 'active',
  id: event.tenantId,
  created: stampOf(event),
  changedAt: event.revision,
  applications: new Map(),
  keys: new Map(),
  revokedKeys: 0,
});

const createApplication = (now: ActiveTenant, event: Caused<'ApplicationCreated'>): void => {
  const { applicationId: id, name, applicationType: type, permissions } = event.data;
  mustBe(!now.applications.has(id), `Application ${id} is created a second time.`);
  const created = { created: stampOf(event), changedAt: event.revision, keys: new Map() };
  mutable(now.applications).set(id, { id, name, type, permissions, ...created });
};

const changeApplication = (
  now: ActiveTenant,
  { revision: changedAt }: Caused,
  application: Application,
  change: Partial<Application> = {},
): void => void mutable(now.applications).set(application.id, { ...application, ...change, changedAt });

const updateApplication = (now: ActiveTenant, event: Caused<'ApplicationUpdated'>): void => {
  const { applicationId, name, permissions } = event.data;
  const change = { name, permissions, modified: stampOf(event) };
  changeApplication(now, event, mustHave(now, applicationId), change);
};

const addKey = (now: ActiveTenant, event: Caused<'KeyAdded'>): void => {
  const { keyId: id, digest, expiresAt, name } = event.data;
  // Its id is not the text in the event, of which there would be one per key.
  const application = mustHave(now, event.data.applicationId);
  const whose = { id, applicationId: application.id, digest, created: stampOf(event) };
  const key: UnrevokedKey = { ...whose, revoked: false, expiresAt, name };
  mutable(now.keys).set(digest, key);
  mutable(application.keys).set(id, key);
  changeApplication(now, event, application);
};

/** The key of a deleted Application is only found among all keys of the tenant. */
const unrevokedKey = (
  now: ActiveTenant,
  { keyId, applicationId }: Caused<'KeyExpirySet' | 'KeyRevoked'>['data'],
): UnrevokedKey | undefined => {
  const application = now.applications.get(applicationId);
  if (application !== undefined) return application.keys.get(keyId);
  const key = findKey(now, ({ id }) => id === keyId);
  return key?.revoked === false ? key : undefined;
};

const changeExpiry = (now: ActiveTenant, event: Caused<'KeyExpirySet'>): void => {
  const { data } = event;
  const key = unrevokedKey(now, data);
  if (key === undefined) return;
  const changed = { ...key, expiresAt: data.expiresAt };
  mutable(now.keys).set(key.digest, changed);
  const application = now.applications.get(data.applicationId);
  if (application === undefined) return;
  mutable(application.keys).set(key.id, changed);
  changeApplication(now, event, application);
};

const revokeKey = (now: ActiveTenant, event: Caused<'KeyRevoked'>): ActiveTenant => {
  const key = unrevokedKey(now, event.data);
  if (key === undefined) return now;
  const { id, applicationId, digest } = key;
  mutable(now.keys).set(digest, { id, applicationId, revoked: true });
  const application = now.applications.get(applicationId);
  if (application !== undefined) {
    mutable(application.keys).delete(id);
    changeApplication(now, event, application);
  }
  return { ...now, revokedKeys: now.revokedKeys + 1 };
};

const evolveActive = (now: ActiveTenant, event: Caused): ActiveTenant | DeletedTenant => {
  switch (event.type) {
    case 'TenantCreated':
      throw new Error('The tenant is created a second time.');
    case 'TenantUpdated': {
      const { name, settings } = event.data;
      return { ...now, name, settings, modified: stampOf(event), changedAt: event.revision };
    }
    case 'TenantPlanChanged':
      return { ...now, includedMonthlyActiveTokens: event.data.includedMonthlyActiveTokens };
    case 'TenantDeleted':
      return { ...now, status: 'deleted' };
    case 'ApplicationCreated':
      createApplication(now, event);
      return now;
    case 'ApplicationUpdated':
      updateApplication(now, event);
      return now;
    case 'ApplicationDeleted': {
      const existed = mutable(now.applications).delete(event.data.applicationId);
      mustBe(existed, 'An Application that does not exist is deleted.');
      return now;
    }
    case 'KeyAdded':
      addKey(now, event);
      return now;
    case 'KeyExpirySet':
      changeExpiry(now, event);
      return now;
    case 'KeyRevoked':
      return revokeKey(now, event);
  }
};

/**
 * The tenant after an event. It takes the maps of the tenant before it over and changes them, so that one must not be
 * used any more. Throws if the event is impossible: then the stream is unreadable.
 */
export const evolve = (now: Tenant, event: Caused): Tenant => {
  if (now.status === 'active') return evolveActive(now, event);
  if (event.type !== 'TenantCreated')
    throw new Error(`The tenant is ${now.status}, so it cannot have the event ${event.type}.`);
  mustBe(now.status === 'absent', 'The tenant is created a second time.');
  return createdTenant(event);
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
