import type { NewKey } from './application-keys';
import { isExpired } from './authority';
import type { ServiceEvent, ServiceRight } from './events';
import { invalidValue, refusal } from './refusal';
import { mustBeName } from './texts';

/** A program of the operator that serves all tenants, such as a token service or a gateway. */
export interface Service {
  readonly id: string;
  readonly name: string;
  readonly may: readonly ServiceRight[];
  readonly createdAt: string;
  readonly revokedAt?: string;
}

export interface ServiceKey {
  readonly id: string;
  readonly serviceId: string;
  readonly createdAt: string;
  readonly expiresAt?: string | undefined;
  readonly revokedAt?: string;
}

/** All services that there ever were, by id, and their keys, by digest. `evolveServices` alone changes the maps. */
export interface Services {
  readonly services: Map<string, Service>;
  readonly keys: Map<string, ServiceKey>;
}

export type DecideServices = (now: Services, at: string) => readonly ServiceEvent[];

export const noServices = (): Services => ({ services: new Map(), keys: new Map() });

const keyWithId = ({ keys }: Services, keyId: string) => [...keys].find(([, { id }]) => id === keyId);

const mustHave = ({ services }: Services, id: string): Service => {
  const service = services.get(id);
  if (service === undefined) throw refusal('service_not_found', `There is no service ${id}.`);
  if (service.revokedAt !== undefined) throw refusal('service_not_found', `Service ${id} is revoked.`);
  return service;
};

const mustHaveKey = (now: Services, keyId: string): readonly [string, ServiceKey] => {
  const found = keyWithId(now, keyId);
  if (found === undefined) throw refusal('key_not_found', `No service has a key ${keyId}.`);
  if (found[1].revokedAt !== undefined) throw refusal('key_not_found', `Key ${keyId} is already revoked.`);
  return found;
};

/** Applies the next event to the maps. Throws if it is impossible: then nothing is known about any service. */
export const evolveServices = (now: Services, event: ServiceEvent & { readonly at: string }): void => {
  const { at: createdAt } = event;
  const { services, keys } = now;
  switch (event.type) {
    case 'ServiceAdded': {
      const { serviceId: id, name, may } = event.data;
      if (services.has(id)) throw new Error(`Service ${id} is added a second time.`);
      return void services.set(id, { id, name, may, createdAt });
    }
    case 'ServiceKeyAdded': {
      const { keyId: id, digest, serviceId, expiresAt } = event.data;
      if (keys.has(digest)) throw new Error(`Key ${id} is added a second time.`);
      return void keys.set(digest, { id, serviceId: mustHave(now, serviceId).id, createdAt, expiresAt });
    }
    case 'ServiceKeyRevoked': {
      const [digest, key] = mustHaveKey(now, event.data.keyId);
      return void keys.set(digest, { ...key, revokedAt: event.at });
    }
    case 'ServiceRevoked': {
      const service = mustHave(now, event.data.serviceId);
      return void services.set(service.id, { ...service, revokedAt: event.at });
    }
  }
};

export type NewServiceKey = Omit<NewKey, 'name'>;

const keyAdded = (serviceId: string, key: NewServiceKey, at: string): ServiceEvent => {
  if (isExpired(key.expiresAt, at))
    throw invalidValue('expires_at', `The expiry ${key.expiresAt} is not in the future.`);
  return { type: 'ServiceKeyAdded', data: { serviceId, ...key } };
};

export const addService =
  (service: Pick<Service, 'id' | 'name' | 'may'>, key: NewServiceKey): DecideServices =>
  (_, at) => {
    const { id: serviceId, name, may } = service;
    mustBeName(name);
    return [{ type: 'ServiceAdded', data: { serviceId, name, may } }, keyAdded(serviceId, key, at)];
  };

export const addServiceKey =
  (serviceId: string, key: NewServiceKey): DecideServices =>
  (now, at) => [keyAdded(mustHave(now, serviceId).id, key, at)];

export const revokeServiceKey =
  (keyId: string): DecideServices =>
  (now) => {
    const [, { serviceId }] = mustHaveKey(now, keyId);
    return [{ type: 'ServiceKeyRevoked', data: { serviceId, keyId } }];
  };

export const revokeService =
  (serviceId: string): DecideServices =>
  (now) => [{ type: 'ServiceRevoked', data: { serviceId: mustHave(now, serviceId).id } }];

export const serviceKeyStatus = (
  { services }: Services,
  { serviceId, expiresAt, revokedAt }: ServiceKey,
  at: string,
): 'active' | 'expired' | 'revoked' => {
  if (revokedAt !== undefined || services.get(serviceId)?.revokedAt !== undefined) return 'revoked';
  return isExpired(expiresAt, at) ? 'expired' : 'active';
};

/** Who calls with the key of a service. */
export interface ServiceIdentity extends Pick<Service, 'id' | 'name' | 'may'> {
  readonly keyId: string;
}

/** The service with this key, or why there is none. */
export const serviceWithKey = (now: Services, digest: string, at: string) => {
  const key = now.keys.get(digest);
  const service = now.services.get(key?.serviceId ?? '');
  if (key === undefined || service === undefined) return 'unknown';
  const status = serviceKeyStatus(now, key, at);
  if (status !== 'active') return status;
  const { id, name, may } = service;
  return { id, name, may, keyId: key.id };
};
