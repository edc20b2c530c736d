import type { Circumstances, TenantEvent } from './events';
import {
  allKeys,
  changingKeys,
  noKeys,
  type ChangingKeys,
  type Key,
  type Stamp,
  type UnrevokedKey,
} from './keys';
import type { ActiveTenant, Application, DeletedTenant, Tenant } from './tenant';

export const stampOf = ({ at, actor }: Pick<Circumstances, 'at' | 'actor'>): Stamp =>
  actor === undefined ? { at } : { at, by: actor.id };

/** An event of the tenant with what its state depends on. */
export type FoldableEvent = TenantEvent & Pick<Circumstances, 'tenantId' | 'revision' | 'at' | 'actor'>;

const mustBe = (condition: boolean, message: string): void => {
  if (!condition) throw new Error(message);
};

/** A copy-on-write map: it is copied at its first change only. */
interface CopyOnWrite<K, V> {
  read(): ReadonlyMap<K, V>;
  change(): Map<K, V>;
}

const copyOnWrite = <K, V>(map: ReadonlyMap<K, V>): CopyOnWrite<K, V> => {
  let own: Map<K, V> | undefined;
  return { read: () => own ?? map, change: () => (own ??= new Map(map)) };
};

/** The maps of a tenant while it is folded. */
interface Maps {
  readonly applications: CopyOnWrite<string, Application>;
  readonly keys: ChangingKeys;
  /** Digest lists copied during this fold, which may be mutated. */
  readonly ownDigests: WeakSet<readonly string[]>;
  addKey(digest: string, key: Key): void;
  /** The digest of the key with this id, if there is one. */
  digestOf(keyId: string, applicationId: string): string | undefined;
}

const mapsOf = (now: Tenant): Maps => {
  const keys = changingKeys(now.status === 'absent' ? noKeys : now.keys);
  const applications = copyOnWrite(
    now.status === 'absent' ? new Map<string, Application>() : now.applications,
  );
  let digests: Map<string, string> | undefined;
  return {
    applications,
    keys,
    ownDigests: new WeakSet(),
    addKey: (digest, key) => {
      keys.set(digest, key);
      digests?.set(key.id, digest);
    },
    digestOf: (keyId, applicationId) => {
      const own = applications.read().get(applicationId)?.digests ?? [];
      const live = own.find((digest) => keys.get(digest)?.id === keyId);
      if (live !== undefined) return live;
      // The Application is deleted, or the key is already revoked.
      digests ??= new Map([...allKeys(keys.keys())].map(([digest, { id }]) => [id, digest]));
      return digests.get(keyId);
    },
  };
};

const changeApplication = (
  { applications }: Maps,
  event: FoldableEvent,
  id: string,
  change: Partial<Pick<Application, 'name' | 'permissions'>>,
): void => {
  const application = applications.read().get(id);
  if (application === undefined) throw new Error(`Application ${id} does not exist.`);
  const changed = { ...application, ...change, modified: stampOf(event), changedAt: event.revision };
  applications.change().set(id, changed);
};

/** The digests of an Application as a mutable list. A deleted Application no longer has one. */
const mutableDigests = ({ applications, ownDigests }: Maps, id: string): string[] => {
  const application = applications.read().get(id);
  if (application === undefined) return [];
  if (ownDigests.has(application.digests)) return application.digests as string[];
  const digests = [...application.digests];
  ownDigests.add(digests);
  applications.change().set(id, { ...application, digests });
  return digests;
};

/** Nothing changes a key that is revoked. */
const changeKey = (
  maps: Maps,
  { keyId, applicationId }: { readonly keyId: string; readonly applicationId: string },
  change: (key: UnrevokedKey) => Key,
): void => {
  const digest = maps.digestOf(keyId, applicationId) ?? '';
  const key = maps.keys.get(digest);
  if (key === undefined || key.revoked) return;
  const changed = change(key);
  maps.keys.set(digest, changed);
  if (!changed.revoked) return;
  const digests = mutableDigests(maps, key.applicationId);
  const at = digests.indexOf(digest);
  if (at >= 0) digests.splice(at, 1);
};

const createdTenant = (event: Extract<FoldableEvent, { type: 'TenantCreated' }>): ActiveTenant => ({
  status: 'active',
  id: event.tenantId,
  ...event.data,
  created: stampOf(event),
  changedAt: event.revision,
  applications: new Map(),
  keys: noKeys,
});

/** Applies an event to an active tenant: returns its own properties and changes its maps in place. */
const applied = (now: ActiveTenant, maps: Maps, event: FoldableEvent): ActiveTenant | DeletedTenant => {
  switch (event.type) {
    case 'TenantCreated':
      throw new Error('The tenant is created a second time.');
    case 'TenantUpdated':
      return { ...now, ...event.data, modified: stampOf(event), changedAt: event.revision };
    case 'TenantPlanChanged':
      return { ...now, ...event.data };
    case 'TenantDeleted':
      return { ...now, status: 'deleted' };
    case 'ApplicationCreated': {
      const { applicationId: id, name, applicationType: type, permissions } = event.data;
      mustBe(!maps.applications.read().has(id), `Application ${id} is created a second time.`);
      const changedAt = event.revision;
      const application = { id, name, type, permissions, created: stampOf(event), changedAt, digests: [] };
      maps.applications.change().set(id, application);
      return now;
    }
    case 'ApplicationUpdated': {
      const { applicationId, ...change } = event.data;
      changeApplication(maps, event, applicationId, change);
      return now;
    }
    case 'ApplicationDeleted': {
      const existed = maps.applications.change().delete(event.data.applicationId);
      mustBe(existed, 'An Application that does not exist is deleted.');
      return now;
    }
    case 'KeyAdded': {
      const { keyId: id, digest, expiresAt, name } = event.data;
      // Not the text in the event, of which there would be one per key.
      const applicationId = maps.applications.read().get(event.data.applicationId)?.id ?? '';
      mustBe(applicationId !== '', 'A key is added to an Application that does not exist.');
      const optional = {
        ...(expiresAt === undefined ? {} : { expiresAt }),
        ...(name === undefined ? {} : { name }),
      };
      maps.addKey(digest, { id, applicationId, revoked: false, created: stampOf(event), ...optional });
      mutableDigests(maps, applicationId).push(digest);
      return now;
    }
    case 'KeyExpirySet':
      changeKey(maps, event.data, (key) => ({ ...key, expiresAt: event.data.expiresAt }));
      return now;
    case 'KeyRevoked':
      changeKey(maps, event.data, ({ id, applicationId }) => ({ id, applicationId, revoked: true }));
      return now;
  }
};

export interface Folding {
  /** Applies one event. Throws if it is impossible in this state: then the stream is unreadable. */
  take(event: FoldableEvent): void;
  /** The state after all events so far, immutable. */
  tenant(): Tenant;
}

/** Copies each map at most once between two calls of `tenant()`, so the cost is per event. */
export const foldingFrom = (start: Tenant): Folding => {
  let now = start;
  let maps = mapsOf(start);
  return {
    take: (event) => {
      if (now.status === 'absent' && event.type === 'TenantCreated') now = createdTenant(event);
      else if (now.status === 'active') now = applied(now, maps, event);
      else if (event.type === 'TenantCreated') throw new Error('The tenant is created a second time.');
      else throw new Error(`The tenant is ${now.status}, so it cannot have the event ${event.type}.`);
    },
    tenant: () => {
      if (now.status === 'absent') return now;
      now = { ...now, applications: maps.applications.read(), keys: maps.keys.keys() };
      maps = mapsOf(now);
      return now;
    },
  };
};

export const evolve = (now: Tenant, event: FoldableEvent): Tenant => {
  const folding = foldingFrom(now);
  folding.take(event);
  return folding.tenant();
};
