import { documentOfTenant, findTenant, type TenantDocument } from '../../../projections/tenants';
import { tenantAt } from '../../audit/past-tenant';
import { keyRefused } from '../../domain/authority';
import type { TenantSettings } from '../../domain/events';
import {
  deleteTenant as decideToDelete,
  mustBeActive,
  updateTenant as decideToUpdate,
  type ActiveTenant,
} from '../../domain/tenant';
import { fault } from '../../fault';
import type { ApiDependencies } from '../context';
import { route, type RouteResponse, type RouteRequest } from '../route';
import { described, flag, membersOf, moment, record, text, uuid } from '../schema';
import { bodyCheck } from '../validation';
import { asOfParameter, readPast } from './as-of';

/** Booleans, encoded as strings. */
const tenantSettings = {
  fingerprint_tokens: described(
    flag,
    'Whether all tokens are fingerprinted with the default expression of their type.',
  ),
  deduplicate_tokens: described(flag, 'Whether tokens are deduplicated when they are created or updated.'),
};

const tenantSchema = record(
  'Tenant',
  {
    id: described(uuid, 'The id of the Tenant.'),
    owner_id: described(uuid, 'The user who owns the Tenant.'),
    name: described(text, 'The name of the Tenant.', 'Acme'),
    settings: described(record('TenantSettings', tenantSettings), 'The settings of the Tenant.'),
    created_by: described(uuid, 'The user who created the Tenant.'),
    created_at: described(moment, 'When it was created.'),
    modified_by: described(uuid, 'The user or the Application that modified it last.'),
    modified_at: described(moment, 'When the request arrived that modified it last.'),
  },
  ['created_by', 'modified_by', 'modified_at'],
);

const tenantResponse = (document: TenantDocument): RouteResponse => {
  const settings = {
    fingerprint_tokens: String(document.settings.fingerprint_tokens),
    deduplicate_tokens: String(document.settings.deduplicate_tokens),
  };
  return { body: membersOf(tenantSchema, { ...document, settings }), etag: String(document.revision) };
};

const PATH = '/tenants/self';

type Flag = 'true' | 'false';

interface WireTenantUpdate {
  readonly name: string;
  readonly settings?: { readonly fingerprint_tokens?: Flag; readonly deduplicate_tokens?: Flag } | null;
}

const tenantUpdate = bodyCheck<WireTenantUpdate>(
  {
    title: 'TenantUpdate',
    type: 'object',
    properties: {
      name: described({ type: 'string', validName: true }, 'The name of the Tenant.'),
      settings: {
        title: 'TenantSettingsUpdate',
        type: ['object', 'null'],
        description: 'The settings to change; all others stay as they are.',
        properties: tenantSettings,
        additionalProperties: false,
      },
    },
    required: ['name'],
  },
  tenantSchema,
  { name: 'Acme', settings: { deduplicate_tokens: 'true' } },
);

const settingsOf = ({ settings }: WireTenantUpdate): Partial<TenantSettings> => {
  const { fingerprint_tokens: fingerprint, deduplicate_tokens: deduplicate } = settings ?? {};
  return {
    ...(fingerprint !== undefined && { fingerprintTokens: fingerprint === 'true' }),
    ...(deduplicate !== undefined && { deduplicateTokens: deduplicate === 'true' }),
  };
};

const ownTenant = { of: 'Tenant', tag: (tenant: ActiveTenant) => String(tenant.revision) } as const;

const tenantAsOf = async (asOf: string, request: RouteRequest, dependencies: ApiDependencies) => {
  const tenant = await readPast(asOf, request, dependencies, (ledgerLog, at) =>
    tenantAt(ledgerLog, request.tenantId, at),
  );
  if (tenant.status === 'absent') throw fault('not_found', 'The Tenant did not exist at that time.');
  return tenantResponse(documentOfTenant(tenant));
};

export const getTenant = route({
  method: 'get',
  path: PATH,
  summary: 'Get the Tenant',
  permission: 'tenant:read',
  query: { as_of: asOfParameter('The Tenant as it was') },
  response: { description: 'The Tenant that owns the key.', schema: tenantSchema, etag: true },
  reads: true,
  handle: async (request, dependencies) => {
    const { tenantId } = request;
    const { as_of } = request.query;
    if (as_of !== undefined) return tenantAsOf(as_of, request, dependencies);
    const document = await request.read((reader) => findTenant(reader, tenantId));
    if (document === undefined)
      throw fault('read_models_unavailable', 'The read models do not show this Tenant yet.');
    if (document.deleted_at !== undefined) throw keyRefused('tenant_deleted');
    return tenantResponse(document);
  },
});

export const updateTenant = route({
  method: 'put',
  path: PATH,
  summary: 'Update the Tenant',
  permission: 'tenant:update',
  body: tenantUpdate,
  response: { description: 'The updated Tenant.', schema: tenantSchema, etag: true },
  handle: async (request, { ledger }) => {
    const decide = decideToUpdate({ name: request.body.name, settings: settingsOf(request.body) });
    const executed = await ledger.execute({ ...request, decide, resource: ownTenant });
    return { ...executed, ...tenantResponse(documentOfTenant(mustBeActive(executed.tenant))) };
  },
});

export const deleteTenant = route({
  method: 'delete',
  path: PATH,
  summary: 'Delete the Tenant',
  permission: 'tenant:delete',
  response: { status: 204, description: 'The Tenant is deleted.' },
  handle: async (request, { ledger }) =>
    ledger.execute({ ...request, decide: decideToDelete(), resource: ownTenant }),
});
