import {
  entityFactTypes,
  factPartsOf,
  type EntityFactData,
  type EntityFactType,
  type EventType,
  type FieldChange,
  type Recorded,
  type StreamKind,
  type TenantEvent,
} from './events';
import { keyUsedMessage } from './key-use';
import type { Tenant } from './tenant';

/** An event as the tenant's owner sees it: one line of the audit log. */
export interface AuditLine {
  readonly entityType: string;
  readonly entityId: string;
  readonly operation: string;
  readonly message: string;
}

/** Who says so: this service decided it, it is what a key did, or another service has reported it. */
export const sources = ['decision', 'access', 'fact'] as const;
export type Source = (typeof sources)[number];

/** What was appended to the log directly is a fact, too, unless it stands in the tenant's own stream. */
export const sourceOf = (type: string, kind: StreamKind): Source => {
  if (kind === 'tenant') return 'decision';
  return type === 'KeyUsed' ? 'access' : 'fact';
};

const MAX_MESSAGE_LENGTH = 250;

type Wording = {
  readonly [T in EventType]: (event: Extract<Recorded, { readonly type: T }>) => AuditLine;
};

const line = (entityType: string, entityId: string, operation: string, message: string): AuditLine => ({
  entityType,
  entityId,
  operation,
  message: message.slice(0, MAX_MESSAGE_LENGTH).toWellFormed(),
});

const operationOf = { Created: 'create', Read: 'read', Used: 'use', Updated: 'update', Deleted: 'delete' };

const entityFact = (type: EntityFactType) => {
  const { entity, operation } = factPartsOf(type);
  const entityType = entity.toLowerCase();
  const usual = `${entity} ${operation.toLowerCase()}`;
  return ({ data: { entityId, message = usual } }: { readonly data: EntityFactData }): AuditLine =>
    line(entityType, entityId, operationOf[operation], message);
};

const facts: object = Object.fromEntries(entityFactTypes.map((type) => [type, entityFact(type)]));

/** The type makes it complete: an event type without a line does not compile. */
const wording: Wording = {
  TenantCreated: (event) => line('tenant', event.tenantId, 'create', 'Tenant created'),
  TenantUpdated: (event) => line('tenant', event.tenantId, 'update', 'Tenant updated'),
  TenantPlanChanged: (event) => line('tenant', event.tenantId, 'update', 'Tenant plan changed'),
  TenantDeleted: (event) => line('tenant', event.tenantId, 'delete', 'Tenant deleted'),
  ApplicationCreated: ({ data }) => line('application', data.applicationId, 'create', 'Application created'),
  ApplicationUpdated: ({ data, changes }) => {
    const message = changes?.length === 0 ? 'Application updated, nothing changed' : 'Application updated';
    return line('application', data.applicationId, 'update', message);
  },
  ApplicationDeleted: ({ data }) => line('application', data.applicationId, 'delete', 'Application deleted'),
  KeyAdded: ({ data }) => line('key', data.keyId, 'create', 'Key added'),
  KeyExpirySet: ({ data }) => line('key', data.keyId, 'update', 'Key expiry set'),
  KeyRevoked: ({ data }) => line('key', data.keyId, 'delete', 'Key revoked'),
  ...(facts as Pick<Wording, EntityFactType>),
  ActivityReported: ({ data }) => {
    const { entityType, entityId, operation, message = `${entityType} ${operation}` } = data;
    return line(entityType.toLowerCase(), entityId, operation.toLowerCase(), message);
  },
  KeyUsed: ({ data }) => {
    const operation = Object.keys(data.refusals).length === 0 ? 'use' : 'deny';
    return line('key', data.keyId, operation, keyUsedMessage(data));
  },
};

export const auditLine = (event: Recorded): AuditLine =>
  (wording[event.type] as (event: Recorded) => AuditLine)(event);

/** The line of an event that the operator has set aside, which may be unreadable. */
export const setAsideLine = (eventId: string): AuditLine =>
  line('event', eventId, 'set_aside', 'Event set aside');

/** The entity types listed for every tenant, whether or not they occur in its log. */
export const knownEntityTypes = ['application', 'bank', 'card', 'proxy', 'reactor', 'tenant', 'token'];

/** `tenant_member` becomes `Tenant member`. */
export const displayName = (entityType: string): string => {
  const words = entityType.replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

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
      return (['name', 'type', 'permissions'] as const).flatMap((field) =>
        change(field, application?.[field]),
      );
    case 'KeyExpirySet': {
      const { keyId, expiresAt } = event.data;
      return change('expires_at', application?.keys.get(keyId)?.expires_at, expiresAt);
    }
    case 'KeyRevoked':
      return change('revoked', false, true);
  }
};
