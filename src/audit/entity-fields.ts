import { allKeys, findKey } from '../domain/keys';
import type { Application, Key, Tenant } from '../domain/tenant';

/** A tenant, an Application or a key as a flat list of fields. Digests of keys are never among them. */
export type Fields = Readonly<Record<string, unknown>>;

/** A field that an event or the time between two moments changed. Null: it was not there, or is not any more. */
export interface Change {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

const tenantFields = (tenant: Exclude<Tenant, { status: 'absent' }>): Fields => ({
  status: tenant.status,
  name: tenant.name,
  owner_id: tenant.ownerId,
  'settings.deduplicate_tokens': tenant.settings.deduplicateTokens,
  'settings.fingerprint_tokens': tenant.settings.fingerprintTokens,
  included_monthly_active_tokens: tenant.includedMonthlyActiveTokens,
});

const applicationFields = ({ name, type, permissions }: Application): Fields => ({ name, type, permissions });

const keyFields = ({ applicationId, name, expiresAt, revoked }: Key): Fields => ({
  application_id: applicationId,
  name: name ?? null,
  expires_at: expiresAt ?? null,
  revoked,
});

/** Undefined: there is no such entity at this moment. */
export const entityFields = (now: Tenant, type: string, id: string): Fields | undefined => {
  if (now.status === 'absent') return undefined;
  if (type === 'tenant') return tenantFields(now);
  if (type === 'application') {
    const application = now.applications.get(id);
    return application === undefined ? undefined : applicationFields(application);
  }
  if (type !== 'key') return undefined;
  const key = findKey(now.keys, (one) => one.id === id);
  return key === undefined ? undefined : keyFields(key);
};

/** Everything that a tenant consists of, by `tenant <id>`, `application <id>` and `key <id>`. */
export const allEntities = (now: Tenant): ReadonlyMap<string, Fields> => {
  const entities = new Map<string, Fields>();
  if (now.status === 'absent') return entities;
  entities.set(`tenant ${now.id}`, tenantFields(now));
  for (const application of now.applications.values())
    entities.set(`application ${application.id}`, applicationFields(application));
  for (const [, key] of allKeys(now.keys)) entities.set(`key ${key.id}`, keyFields(key));
  return entities;
};

export const changesBetween = (before: Fields = {}, after: Fields = {}): readonly Change[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .map((field) => ({ field, from: before[field] ?? null, to: after[field] ?? null }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to));

/** Entity by entity, only what differs. */
export const differencesBetween = (before: Tenant, after: Tenant) => {
  const [one, other] = [allEntities(before), allEntities(after)];
  return [...new Set([...one.keys(), ...other.keys()])]
    .map((entity) => ({ entity, changes: changesBetween(one.get(entity), other.get(entity)) }))
    .filter(({ changes }) => changes.length > 0);
};
