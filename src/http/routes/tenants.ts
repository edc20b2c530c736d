import type { TenantSettings } from '../../domain/events';
import type { Moment } from '../../audit/tenant-history';
import { keyRefused, mustHold } from '../../domain/authority';
import { parseMoment } from '../../domain/moment';
import { deleteTenant, mustBeActive, updateTenant, type ActiveTenant } from '../../domain/tenant';
import { documentOfTenant, findTenant } from '../../../projections/tenants';
import { fault } from '../../fault';
import { bodyCheck, invalid, queryCheck, textParameter } from '../request/validation';
import { commandOf } from './command';
import { placeAt, positionRefused } from './events';
import { ok, route, type RouteResponse, type RouteRequest, type RouteDependencies } from './route';
import { described, type Schema } from './schema';
import { tenantExample, tenantSchema, tenantSettings, tenantView } from './tenant-view';

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
    name: described({ type: 'string', validName: true }, 'The name of the Tenant.'),
    settings: {
      type: ['object', 'null'],
      description: 'The settings to change; those that are left out stay as they are.',
      properties: tenantSettings,
      additionalProperties: false,
    },
  },
  required: ['name'],
};

const tenantUpdate = bodyCheck<WireTenantUpdate>(tenantUpdateSchema, tenantSchema, {
  name: 'Acme',
  settings: { deduplicate_tokens: 'true' },
});

const settingsOf = ({ settings }: WireTenantUpdate): Partial<TenantSettings> => ({
  ...(settings?.fingerprint_tokens === undefined
    ? {}
    : { fingerprintTokens: settings.fingerprint_tokens === 'true' }),
  ...(settings?.deduplicate_tokens === undefined
    ? {}
    : { deduplicateTokens: settings.deduplicate_tokens === 'true' }),
});

const conditionOnTenant = { of: 'Tenant', tag: (tenant: ActiveTenant) => String(tenant.changedAt) } as const;

const query = queryCheck({
  as_of: textParameter(
    'The Tenant as it was at a time, or after the event at a `position` of `/events`; needs the permission `log:read`, too.',
    '2026-01-31T12:00:00Z',
  ),
});

const momentOf = async (
  text: string,
  request: RouteRequest<unknown>,
  dependencies: RouteDependencies,
): Promise<Moment> => {
  const time = parseMoment(text.replace(' ', '+'));
  if (time !== undefined) return { time };
  const place = await placeAt(text, request, dependencies);
  if (place !== undefined) return { position: place.position };
  const expected = 'an ISO 8601 date or date-time, or the position of an event';
  throw invalid({ as_of: [positionRefused(text, expected)] });
};

/** Folds the tenant's own events, so the cost grows with their number. */
const tenantAsOf = async (
  text: string,
  request: RouteRequest<unknown>,
  dependencies: RouteDependencies,
): Promise<RouteResponse> => {
  mustHold(request.application, 'log:read');
  const moment = await momentOf(text, request, dependencies);
  const { tenantId, deadline, gone } = request;
  const document = await dependencies.events.reading.tenantAt(tenantId, moment, { deadline, gone: gone() });
  if (document === undefined) throw fault('not_found', 'The Tenant did not exist at that time.');
  return ok(tenantView(document), String(document.revision));
};

export const getOwnTenant = route<undefined, ReturnType<typeof query>>({
  method: 'get',
  path: PATH,
  operationId: 'getTenant',
  summary: 'Get the Tenant',
  tag: 'Tenants',
  permission: 'tenant:read',
  query,
  response: {
    status: 200,
    description: 'The Tenant that owns the key.',
    schema: tenantSchema,
    example: tenantExample,
    etag: true,
  },
  projection: 'tenants',
  handle: async (request, dependencies) => {
    const { tenantId } = request;
    const { as_of } = request.query;
    if (as_of !== undefined) return tenantAsOf(as_of, request, dependencies);
    const document = await findTenant(dependencies.reader('tenants'), tenantId);
    if (document === undefined || document.deleted_at !== undefined) throw keyRefused('tenant_deleted');
    return ok(tenantView(document), String(document.revision));
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
  response: {
    status: 200,
    description: 'The updated Tenant.',
    schema: tenantSchema,
    example: tenantExample,
    etag: true,
  },
  handle: async (request, { ledger }) => {
    const decide = updateTenant({ name: request.body.name, settings: settingsOf(request.body) });
    const { tenant, position } = await ledger.execute(commandOf(request, decide, conditionOnTenant));
    const updated = mustBeActive(tenant);
    return { ...ok(tenantView(documentOfTenant(updated)), String(updated.changedAt)), position };
  },
});

export const deleteOwnTenant = route({
  method: 'delete',
  path: PATH,
  operationId: 'deleteTenant',
  summary: 'Delete the Tenant',
  tag: 'Tenants',
  permission: 'tenant:delete',
  response: { status: 204, description: 'The Tenant is deleted.' },
  handle: async (request, { ledger }) => {
    const { position } = await ledger.execute(commandOf(request, deleteTenant(), conditionOnTenant));
    return { status: 204, position };
  },
});
