import type { FieldChange, TenantEvent } from './events';
import type { Tenant } from './tenant';

const isSame = (from: unknown, to: unknown): boolean =>
  Array.isArray(from) && Array.isArray(to)
    ? from.length === to.length && from.every((value, at) => value === to[at])
    : from === to;

const change = (field: string, from: unknown = null, to: unknown = null): readonly FieldChange[] =>
  isSame(from, to) ? [] : [{ field, from, to }];

/**
 * What an event replaces or ends in the state right before it, never with digests of keys. Creations replace nothing:
 * their data says everything.
 */
export const changesOf = (before: Tenant, event: TenantEvent): readonly FieldChange[] => {
  if (before.status !== 'active') return [];
  const { name, settings } = before;
  const application =
    'applicationId' in event.data ? before.applications.get(event.data.applicationId) : undefined;
  switch (event.type) {
    case 'TenantCreated':
    case 'ApplicationCreated':
    case 'KeyAdded':
      return [];
    case 'TenantUpdated': {
      const { deduplicateTokens, fingerprintTokens } = event.data.settings;
      return [
        ...change('name', name, event.data.name),
        ...change('settings.deduplicate_tokens', settings.deduplicateTokens, deduplicateTokens),
        ...change('settings.fingerprint_tokens', settings.fingerprintTokens, fingerprintTokens),
      ];
    }
    case 'TenantPlanChanged': {
      const { includedMonthlyActiveTokens: included } = event.data;
      return change('included_monthly_active_tokens', before.includedMonthlyActiveTokens, included);
    }
    case 'TenantDeleted':
      return change('status', before.status, 'deleted');
    case 'ApplicationUpdated':
      return [
        ...change('name', application?.name, event.data.name),
        ...change('permissions', application?.permissions, event.data.permissions),
      ];
    case 'ApplicationDeleted':
      return [
        ...change('name', application?.name),
        ...change('type', application?.type),
        ...change('permissions', application?.permissions),
      ];
    case 'KeyExpirySet': {
      const { keyId, expiresAt } = event.data;
      return change('expires_at', application?.keys.get(keyId)?.expires_at, expiresAt);
    }
    case 'KeyRevoked':
      return change('revoked', false, true);
  }
};
