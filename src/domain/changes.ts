import type { FieldChange, TenantEvent } from './events';
import type { ActiveTenant, Tenant } from './tenant';

const isSame = (from: unknown, to: unknown): boolean =>
  Array.isArray(from) && Array.isArray(to)
    ? from.length === to.length && from.every((value, at) => value === to[at])
    : from === to;

const change = (field: string, from: unknown = null, to: unknown = null): readonly FieldChange[] =>
  isSame(from, to) ? [] : [{ field, from, to }];

const changesOfActive = (now: ActiveTenant, event: TenantEvent): readonly FieldChange[] => {
  switch (event.type) {
    case 'TenantCreated':
    case 'ApplicationCreated':
    case 'KeyAdded':
      return [];
    case 'TenantUpdated': {
      const { name, settings } = event.data;
      const { deduplicateTokens, fingerprintTokens } = settings;
      return [
        ...change('name', now.name, name),
        ...change('settings.deduplicate_tokens', now.settings.deduplicateTokens, deduplicateTokens),
        ...change('settings.fingerprint_tokens', now.settings.fingerprintTokens, fingerprintTokens),
      ];
    }
    case 'TenantPlanChanged': {
      const { includedMonthlyActiveTokens: included } = event.data;
      return change('included_monthly_active_tokens', now.includedMonthlyActiveTokens, included);
    }
    case 'TenantDeleted':
      return change('status', now.status, 'deleted');
    case 'ApplicationUpdated': {
      const before = now.applications.get(event.data.applicationId);
      return [
        ...change('name', before?.name, event.data.name),
        ...change('permissions', before?.permissions, event.data.permissions),
      ];
    }
    case 'ApplicationDeleted': {
      const { name, type, permissions } = now.applications.get(event.data.applicationId) ?? {};
      return [...change('name', name), ...change('type', type), ...change('permissions', permissions)];
    }
    case 'KeyExpirySet': {
      const { applicationId, keyId, expiresAt } = event.data;
      const key = now.applications.get(applicationId)?.keys.get(keyId);
      return change('expires_at', key?.expiresAt, expiresAt);
    }
    case 'KeyRevoked':
      return change('revoked', false, true);
  }
};

/**
 * What an event replaces or ends in the state right before it, never with digests of keys. Creations replace nothing:
 * their data says everything.
 */
export const changesOf = (before: Tenant, event: TenantEvent): readonly FieldChange[] =>
  before.status === 'active' ? changesOfActive(before, event) : [];
