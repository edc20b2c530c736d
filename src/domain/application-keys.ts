import { holds, isExpired, liveKeysOf, mustHoldAll } from './authority';
import type { TenantEvent } from './events';
import { invalidValue, refusal } from './refusal';
import * as tenants from './tenant';
import { mustBeName } from './texts';

export interface NewKey {
  readonly keyId: string;
  readonly digest: string;
  readonly name?: string | undefined;
  readonly expiresAt?: string | undefined;
}

export const keyAdded = (
  tenant: tenants.ActiveTenant,
  applicationId: string,
  { keyId, digest, expiresAt, name }: NewKey,
  { at }: tenants.DecisionContext,
): TenantEvent => {
  if (name !== undefined) mustBeName(name);
  if (tenant.keys.has(digest)) throw refusal('already_exists', 'This key already exists.');
  if (isExpired(expiresAt, at))
    throw invalidValue('expires_at', `The expiry ${expiresAt} is not in the future.`);
  return { type: 'KeyAdded', data: { keyId, applicationId, digest, expiresAt, name } };
};

/** A key gives its holder every permission that its Application holds, so creating one grants them all. */
const mustHoldPermissionsOf = (context: tenants.DecisionContext, application: tenants.Application): void => {
  const held = application.permissions.filter((permission) => holds(application, permission));
  mustHoldAll(context, held, 'A new key of this Application');
};

const tooManyKeys = (whose: string, most: number) =>
  refusal('quota_exceeded', `${whose} can have at most ${most} keys that are live. Revoke one first.`);

/** Throws unless the tenant may have one more key, after so many have ended. */
export const mustHaveRoomInAll = (tenant: tenants.ActiveTenant, at: string, ended = 0): void => {
  if (tenant.keys.size < tenants.QUOTAS.liveKeysInAll) return;
  let live = -ended;
  for (const application of tenant.applications.values()) live += liveKeysOf(application, at).length;
  if (live >= tenants.QUOTAS.liveKeysInAll) throw tooManyKeys('A Tenant', tenants.QUOTAS.liveKeysInAll);
};

const mustHaveRoom = (tenant: tenants.ActiveTenant, at: string, live: number, ended = 0): void => {
  if (live - ended >= tenants.QUOTAS.liveKeys) throw tooManyKeys('An Application', tenants.QUOTAS.liveKeys);
  mustHaveRoomInAll(tenant, at, ended);
};

export const addKey =
  (applicationId: string, key: NewKey): tenants.Decide =>
  (now, context) => {
    const tenant = tenants.mustBeActive(now);
    const application = tenants.mustHave(tenant, applicationId);
    mustHoldPermissionsOf(context, application);
    mustHaveRoom(tenant, context.at, liveKeysOf(application, context.at).length);
    return [keyAdded(tenant, applicationId, key, context)];
  };

/** How an existing key ends: at once, or at a given time unless it expires before. */
const ending = (key: tenants.UnrevokedKey, endsAt?: string): TenantEvent[] => {
  const { id: keyId, application_id: applicationId } = key;
  if (endsAt === undefined) return [{ type: 'KeyRevoked', data: { keyId, applicationId } }];
  if (isExpired(key.expires_at, endsAt)) return [];
  return [{ type: 'KeyExpirySet', data: { keyId, applicationId, expiresAt: endsAt } }];
};

/** A grace period lasts at most a year. */
export const MAX_GRACE_SECONDS = 31_536_000;

/** Replaces all keys of an Application by a new one. The old ones end at once, or after a grace period for rotation. */
export const regenerateKey =
  (applicationId: string, key: NewKey, graceSeconds: number): tenants.Decide =>
  (now, context) => {
    const tenant = tenants.mustBeActive(now);
    const application = tenants.mustHave(tenant, applicationId);
    mustHoldPermissionsOf(context, application);
    const live = liveKeysOf(application, context.at);
    mustHaveRoom(tenant, context.at, live.length, graceSeconds === 0 ? live.length : 0);
    const later = new Date(Date.parse(context.at) + graceSeconds * 1_000).toISOString();
    const ended = live.flatMap((oldKey) => ending(oldKey, graceSeconds === 0 ? undefined : later));
    return [...ended, keyAdded(tenant, applicationId, key, context)];
  };

/** Without an Application the key may belong to any, even a deleted one, and may be expired. */
export const revokeKey =
  (keyId: string, applicationId?: string): tenants.Decide =>
  (now, { at }) => {
    const tenant = tenants.mustBeActive(now);
    const isWanted = ({ id }: Pick<tenants.Key, 'id'>): boolean => id === keyId;
    const [where, key] =
      applicationId === undefined
        ? [`Tenant ${tenant.id}`, tenants.findKey(tenant, isWanted)]
        : [
            `Application ${applicationId}`,
            liveKeysOf(tenants.mustHave(tenant, applicationId), at).find(isWanted),
          ];
    if (key === undefined) throw refusal('key_not_found', `${where} has no key ${keyId}.`);
    if (key.revoked) throw refusal('key_not_found', `Key ${keyId} is already revoked.`);
    return [{ type: 'KeyRevoked', data: { keyId, applicationId: key.application_id } }];
  };
