import { allKeys, findKey, type Key } from '../domain/keys';
import type { Application, Tenant } from '../domain/tenant';

/** A tenant, an Application or a key as a flat list of fields, without the digests of keys. */
export type Fields = Readonly<Record<string, unknown>>;

/** A field that an event changed, or that differs between two moments. Null: the field did not exist then. */
export interface Change {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** What remains of an entity when everything was named: a new member that is neither shown nor left out does not compile. */
type Nothing = Readonly<Record<string, never>>;

const tenantFields = (tenant: Exclude<Tenant, { status: 'absent' }>): Fields => {
  const { status, name, ownerId, settings, includedMonthlyActiveTokens, ...others } = tenant;
  const { id: _i, created: _c, modified: _m, changedAt: _r, applications: _a, keys: _k, ...rest } = others;
  rest satisfies Nothing;
  const { deduplicateTokens, fingerprintTokens, ...otherSettings } = settings;
  otherSettings satisfies Nothing;
  return {
    status,
    name,
    owner_id: ownerId,
    'settings.deduplicate_tokens': deduplicateTokens,
    'settings.fingerprint_tokens': fingerprintTokens,
    included_monthly_active_tokens: includedMonthlyActiveTokens,
  };
};

const applicationFields = (application: Application): Fields => {
  const { name, type, permissions, ...others } = application;
  const { id: _i, created: _c, modified: _m, changedAt: _r, digests: _d, ...rest } = others;
  rest satisfies Nothing;
  return { name, type, permissions };
};

const keyFields = (key: Key): Fields => {
  const { applicationId, name, expiresAt, revoked, ...others } = key;
  const { id: _i, created: _c, ...rest } = others;
  rest satisfies Nothing;
  return { application_id: applicationId, name: name ?? null, expires_at: expiresAt ?? null, revoked };
};

/** Undefined: there is no such entity at that moment. */
export const entityFields = (tenant: Tenant, type: string, id: string): Fields | undefined => {
  if (tenant.status === 'absent') return undefined;
  if (type === 'tenant') return tenantFields(tenant);
  if (type === 'application') {
    const application = tenant.applications.get(id);
    return application === undefined ? undefined : applicationFields(application);
  }
  if (type !== 'key') return undefined;
  const key = findKey(tenant.keys, (candidate) => candidate.id === id);
  return key === undefined ? undefined : keyFields(key);
};

/** All entities of a tenant, by `tenant <id>`, `application <id>` and `key <id>`. */
export const allEntities = (tenant: Tenant): ReadonlyMap<string, Fields> => {
  const entities = new Map<string, Fields>();
  if (tenant.status === 'absent') return entities;
  entities.set(`tenant ${tenant.id}`, tenantFields(tenant));
  for (const application of tenant.applications.values())
    entities.set(`application ${application.id}`, applicationFields(application));
  for (const [, key] of allKeys(tenant.keys)) entities.set(`key ${key.id}`, keyFields(key));
  return entities;
};

export const changesBetween = (before: Fields = {}, after: Fields = {}): readonly Change[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((field) => ({ field, from: before[field] ?? null, to: after[field] ?? null }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to));

/** The fields that differ, by entity. */
export const differencesBetween = (before: Tenant, after: Tenant) => {
  const [from, to] = [allEntities(before), allEntities(after)];
  return [...new Set([...from.keys(), ...to.keys()])]
    .map((entity) => ({ entity, changes: changesBetween(from.get(entity), to.get(entity)) }))
    .filter(({ changes }) => changes.length > 0);
};
