import type { TenantSettings } from '../../domain/events';
import { keyRefused } from '../../domain/authority';
import {
  deleteTenant,
  mustBeActive,
  updateTenant,
  type Decide,
  type TenantUpdate,
} from '../../domain/tenant';
import type { Command } from '../../ledger/ledger';
import { findTenant } from '../../../projections/tenants';
import { bodyCheck } from '../request/validation';
import { ok, route, type Asked } from './route';
import { meaning, type Schema } from './schema';
import { tenantExample, tenantSchema, tenantSettings, viewOfDocument, viewOfTenant } from './tenant-view';

const PATH = '/tenants/self';

type Flag = 'true' | 'false';

interface WireTenantUpdate {
  readonly name: string;
  readonly settings?: { readonly fingerprint_tokens?: Flag; readonly deduplicate_tokens?: Flag } | null;
}

const tenantUpdateSchema: Schema = {
  title: 'TenantUpdate',
  type: 'object',
  properties: {
    name: meaning({ type: 'string', aName: true }, 'The name of the Tenant.'),
    settings: {
      type: ['object', 'null'],
      description: 'The settings to change; those that are left out stay as they are.',
      properties: tenantSettings,
      additionalProperties: false,
    },
  },
  required: ['name'],
};

const settingsOf = ({ settings }: WireTenantUpdate): Partial<TenantSettings> => ({
  ...(settings?.fingerprint_tokens === undefined
    ? {}
    : { fingerprintTokens: settings.fingerprint_tokens === 'true' }),
  ...(settings?.deduplicate_tokens === undefined
    ? {}
    : { deduplicateTokens: settings.deduplicate_tokens === 'true' }),
});

const tenantUpdate = bodyCheck<WireTenantUpdate, TenantUpdate>(
  tenantUpdateSchema,
  (wire) => ({ name: wire.name, settings: settingsOf(wire) }),
  { name: 'Acme', settings: { deduplicate_tokens: 'true' } },
);

const commandOf = (asked: Asked<unknown>, decide: Decide): Command => ({
  decide,
  tenantId: asked.tenantId,
  caller: asked.caller,
  at: asked.at,
  traceId: asked.traceId,
  deadline: asked.deadline,
  ...(asked.permission === undefined ? {} : { permission: asked.permission }),
  ...(asked.precondition === undefined ? {} : { precondition: asked.precondition }),
  ...(asked.idempotency === undefined ? {} : { idempotency: asked.idempotency }),
});

export const getOwnTenant = route({
  method: 'get',
  path: PATH,
  operationId: 'getTenant',
  summary: 'Get the Tenant',
  tag: 'Tenants',
  permission: 'tenant:read',
  answer: {
    status: 200,
    description: 'The Tenant that owns the key.',
    schema: tenantSchema,
    example: tenantExample,
    etag: true,
  },
  from: 'tenants',
  handle: async ({ tenantId }, { reader }) => {
    const document = await findTenant(reader('tenants'), tenantId);
    if (document === undefined || document.deleted_at !== undefined) throw keyRefused('tenant_deleted');
    return ok(viewOfDocument(document), document.revision);
  },
});

export const updateOwnTenant = route({
  method: 'put',
  path: PATH,
  operationId: 'updateTenant',
  summary: 'Update the Tenant',
  tag: 'Tenants',
  permission: 'tenant:update',
  body: tenantUpdate,
  answer: {
    status: 200,
    description: 'The updated Tenant.',
    schema: tenantSchema,
    example: tenantExample,
    etag: true,
  },
  handle: async (asked, { ledger }) => {
    const { tenant, position } = await ledger.execute(commandOf(asked, updateTenant(asked.body)));
    const updated = mustBeActive(tenant);
    return { ...ok(viewOfTenant(updated), updated.changedAt), position };
  },
});

export const deleteOwnTenant = route({
  method: 'delete',
  path: PATH,
  operationId: 'deleteTenant',
  summary: 'Delete the Tenant',
  tag: 'Tenants',
  permission: 'tenant:delete',
  answer: { status: 204, description: 'The Tenant is deleted.' },
  handle: async (asked, { ledger }) => {
    const { position } = await ledger.execute(commandOf(asked, deleteTenant()));
    return { status: 204, position };
  },
});
