import type { Recorded, TenantEvent } from './events';
import type { ActiveTenant, Application, DeletedTenant, Key, Stamp, Tenant } from './tenant';

const stamp = (event: Recorded<TenantEvent>): Stamp =>
  event.actor === undefined ? { at: event.at } : { at: event.at, by: event.actor.id };

const mustBe = (isSo: boolean, sentence: string): void => {
  if (!isSo) throw new Error(sentence);
};

/** A map that is copied at its first change, however many follow. */
interface Changing<K, V> {
  read(): ReadonlyMap<K, V>;
  change(): Map<K, V>;
}

const changing = <K, V>(map: ReadonlyMap<K, V>): Changing<K, V> => {
  let own: Map<K, V> | undefined;
  return { read: () => own ?? map, change: () => (own ??= new Map(map)) };
};

/** The maps of a tenant while it is folded. */
interface Maps {
  readonly applications: Changing<string, Application>;
  readonly keys: Changing<string, Key>;
  addKey(digest: string, key: Key): void;
  /** Of a key's id, if there is such a key. */
  digestOf(keyId: string): string | undefined;
}

const mapsOf = (now: Tenant): Maps => {
  const keys = changing(now.status === 'absent' ? new Map<string, Key>() : now.keys);
  let digests: Map<string, string> | undefined;
  return {
    applications: changing(now.status === 'absent' ? new Map<string, Application>() : now.applications),
    keys,
    addKey: (digest, key) => {
      keys.change().set(digest, key);
      digests?.set(key.id, digest);
    },
    digestOf: (keyId) => {
      digests ??= new Map([...keys.read()].map(([digest, { id }]) => [id, digest]));
      return digests.get(keyId);
    },
  };
};

const changeApplication = (
  { applications }: Maps,
  id: string,
  change: (application: Application) => Application,
): void => {
  const application = applications.read().get(id);
  if (application === undefined) throw new Error(`Application ${id} does not exist.`);
  applications.change().set(id, change(application));
};

const revoke = ({ keys, digestOf }: Maps, keyId: string): void => {
  const digest = digestOf(keyId) ?? '';
  const key = keys.read().get(digest);
  if (key !== undefined) keys.change().set(digest, { ...key, revoked: true });
};

const createdTenant = (event: Extract<Recorded, { type: 'TenantCreated' }>): ActiveTenant => ({
  status: 'active',
  id: event.tenantId,
  ...event.data,
  created: stamp(event),
  changedAt: event.revision,
  applications: new Map(),
  keys: new Map(),
});

/** What an event does to a tenant that is there: its own members are given back, its maps are changed. */
const applied = (
  now: ActiveTenant,
  maps: Maps,
  event: Recorded<TenantEvent>,
): ActiveTenant | DeletedTenant => {
  switch (event.type) {
    case 'TenantCreated':
      throw new Error('The tenant is created a second time.');
    case 'TenantUpdated':
      return { ...now, ...event.data, modified: stamp(event), changedAt: event.revision };
    case 'TenantPlanChanged':
      return { ...now, ...event.data };
    case 'TenantDeleted':
      return { ...now, status: 'deleted' };
    case 'ApplicationCreated': {
      const { applicationId: id, name, applicationType: type, permissions } = event.data;
      mustBe(!maps.applications.read().has(id), `Application ${id} is created a second time.`);
      maps.applications.change().set(id, { id, name, type, permissions });
      return now;
    }
    case 'ApplicationRenamed': {
      const { applicationId, name } = event.data;
      changeApplication(maps, applicationId, (application) => ({ ...application, name }));
      return now;
    }
    case 'ApplicationPermissionsSet': {
      const { applicationId, permissions } = event.data;
      changeApplication(maps, applicationId, (application) => ({ ...application, permissions }));
      return now;
    }
    case 'ApplicationDeleted': {
      const wasThere = maps.applications.change().delete(event.data.applicationId);
      mustBe(wasThere, 'An Application that does not exist is deleted.');
      return now;
    }
    case 'KeyAdded': {
      const { keyId: id, applicationId, digest, expiresAt } = event.data;
      const isThere = maps.applications.read().has(applicationId);
      mustBe(isThere, 'A key is added to an Application that does not exist.');
      const expiry = expiresAt === undefined ? {} : { expiresAt };
      maps.addKey(digest, { id, applicationId, revoked: false, ...expiry });
      return now;
    }
    case 'KeyRevoked':
      revoke(maps, event.data.keyId);
      return now;
  }
};

/** A tenant while its events are folded. */
export interface Folding {
  /** One more event. One that cannot follow the state throws: the stream is unreadable. */
  take(event: Recorded<TenantEvent>): void;
  /** The state after everything that was taken. Nothing changes it any more. */
  tenant(): Tenant;
}

/** Folds at a cost per event: what the tenant holds is copied at most once between two looks at it. */
export const foldingFrom = (start: Tenant): Folding => {
  let now = start;
  let maps = mapsOf(start);
  return {
    take: (event) => {
      if (now.status === 'absent' && event.type === 'TenantCreated') now = createdTenant(event);
      else if (now.status === 'active') now = applied(now, maps, event);
      else if (event.type === 'TenantCreated') throw new Error('The tenant is created a second time.');
      else throw new Error(`A ${now.status} tenant cannot have the event ${event.type}.`);
    },
    tenant: () => {
      if (now.status === 'absent') return now;
      now = { ...now, applications: maps.applications.read(), keys: maps.keys.read() };
      maps = mapsOf(now);
      return now;
    },
  };
};

/** The state after one more event. An event that cannot follow the state throws: the stream is unreadable. */
export const evolve = (now: Tenant, event: Recorded<TenantEvent>): Tenant => {
  const folding = foldingFrom(now);
  folding.take(event);
  return folding.tenant();
};
