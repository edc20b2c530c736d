import type { EventType, Recorded } from './events';
import { entityFactTypes, factPartsOf, type EntityFactType } from './facts';
import { keyUsedMessage } from './key-use';

/** An event as the tenant's owner sees it: one line of the audit log. */
export interface AuditLine {
  readonly entityType: string;
  readonly entityId: string;
  readonly operation: string;
  readonly message: string;
}

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
  const [entityType, message] = [entity.toLowerCase(), `${entity} ${operation.toLowerCase()}`];
  return ({ data }: { readonly data: { readonly entityId: string } }): AuditLine =>
    line(entityType, data.entityId, operationOf[operation], message);
};

const entityFacts = Object.fromEntries(
  entityFactTypes.map((type) => [type, entityFact(type)]),
) as unknown as Pick<Wording, EntityFactType>;

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
  ...entityFacts,
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

/** The entity types listed for every tenant, whether or not they occur in its log. */
export const knownEntityTypes = ['application', 'bank', 'card', 'proxy', 'reactor', 'tenant', 'token'];

/** `tenant_member` becomes `Tenant member`. */
export const displayName = (entityType: string): string => {
  const words = entityType.replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
};
