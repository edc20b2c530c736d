import { findKeyDays } from '../../../projections/key-days';
import { addKey, MAX_GRACE_SECONDS, regenerateKey, revokeKey } from '../../domain/application-keys';
import { keyRefused, keyStatusIn } from '../../domain/authority';
import type { Caused } from '../../domain/events';
import { applicationTypes } from '../../domain/permissions';
import { keyAsAdded } from '../../domain/tenant';
import { uuidFrom } from '../../domain/texts';
import { fault } from '../../fault';
import { newKey } from '../../ledger/api-key';
import { choiceParameter, severalOf, uuidParameter } from '../query-parameters';
import { route, type RouteRequest } from '../route';
import { count, described, listOf, moment, record, text, uuid, oneOf } from '../schema';
import { bodyCheck } from '../validation';
import * as resource from './application-resource';

/** Not `:id`, which some generators would mix up with the parameter `id` of the query. */
const PATH = '/applications/:application_id/keys';

const keyNotFound = () => fault('key_not_found', 'This Application has no key with this id.');

const keyIdOf = ({ params }: RouteRequest): string => {
  const id = uuidFrom(params['key_id']);
  if (id === undefined) throw keyNotFound();
  return id;
};

const keyIdParameter = described(uuid, 'The id of the key.', 'bbbbbbbb-cccc-4ddd-8eee-ffffffffffff');

const keyDaySchema = record('ApplicationKeyUse', {
  date: described({ type: 'string', format: 'date' }, 'The day, in UTC.', '2026-02-01'),
  operations: described(
    { type: 'object', additionalProperties: count },
    'How many requests the key was accepted for, by the operation id in this description.',
    { getTenant: 12 },
  ),
  refusals: described(
    { type: 'object', additionalProperties: count },
    'How many requests were refused, by reason: a missing permission, or because the key is expired, revoked or of a deleted Application.',
    { permission_missing: 1 },
  ),
  missing_permissions: described(listOf(text), 'The permissions that were missing.', ['tenant:update']),
  events_given_out: described(count, 'How many events `GET /events` sent, and rows `GET /logs/csv`.'),
  first_used_at: described(moment, 'When the first request arrived.'),
  last_used_at: described(moment, 'When the last request arrived, or the last stream ended.'),
});

export const listApplicationKeys = route({
  method: 'get',
  path: PATH,
  params: { application_id: resource.idParameter },
  summary: 'List the keys of an Application',
  permission: 'application:read',
  query: {
    id: severalOf(uuidParameter('Only these keys; may be repeated.', 'bbbbbbbb-cccc-4ddd-8eee-ffffffffffff')),
    type: severalOf(
      choiceParameter('Only if the Application is of one of these types.', applicationTypes, 'private'),
    ),
  },
  response: {
    description: 'Its keys that are neither revoked nor expired, oldest first.',
    schema: listOf(resource.keySchema),
  },
  reads: true,
  handle: async (request, dependencies) => {
    const { id: ids, type: types } = request.query;
    const { application, keys } = await resource.liveApplication(request, dependencies);
    const isOfType = types?.includes(application.type) ?? true;
    return { body: isOfType ? keys.filter(({ id }) => ids?.some((wanted) => wanted === id) ?? true) : [] };
  },
});

export const getApplicationKey = route({
  method: 'get',
  path: `${PATH}/:key_id`,
  params: { application_id: resource.idParameter, key_id: keyIdParameter },
  summary: 'Get a key of an Application',
  permission: 'application:read',
  response: { description: 'What is known of the key.', schema: resource.keySchema },
  reads: true,
  handle: async (request, dependencies) => {
    const { keys } = await resource.liveApplication(request, dependencies);
    const keyId = keyIdOf(request);
    const key = keys.find(({ id }) => id === keyId);
    if (key === undefined) throw keyNotFound();
    return { body: key };
  },
});

/** Also of a key that is revoked or expired: what was done with it matters most then. */
export const listApplicationKeyUses = route({
  method: 'get',
  path: `${PATH}/:key_id/uses`,
  params: { application_id: resource.idParameter, key_id: keyIdParameter },
  summary: 'List what a key was used for',
  permission: 'application:read',
  response: {
    description: 'One entry for each of the last 30 days, in UTC, on which the key was used, newest first.',
    schema: listOf(keyDaySchema),
  },
  reads: true,
  handle: async (request, { keyUses }) => {
    const { tenantId, at, read } = request;
    const keyId = keyIdOf(request);
    const applicationId = resource.applicationIdOf(request);
    const body = await read(async (reader) => {
      const key = await reader.get(tenantId, 'keys', keyId);
      if (key?.['application_id'] !== applicationId) return undefined;
      return findKeyDays(reader, tenantId, keyId, at, keyUses.unwritten(tenantId, keyId));
    });
    if (body === undefined) throw keyNotFound();
    return { body };
  },
});

export const createApplicationKey = route({
  method: 'post',
  path: PATH,
  params: { application_id: resource.idParameter },
  summary: 'Add a key to an Application',
  permission: 'application:update',
  body: bodyCheck<resource.WireKey>(
    { title: 'ApplicationKeyCreation', type: 'object', properties: resource.keyProperties },
    resource.keySchema,
    { name: 'Nightly import', expires_at: '2031-01-31T12:00:00Z' },
  ),
  response: {
    status: 201,
    description: 'The new key. The response to a repeated request has no `key`.',
    schema: resource.keySchema,
    showsKey: true,
  },
  handle: async (request, dependencies) => {
    const { key, input } = newKey(request.tenantId, resource.keyInputOf(request.body));
    const decide = addKey(resource.applicationIdOf(request), input);
    const executed = await resource.changeApplication(request, dependencies, decide);
    const added = executed.events.at(-1) as Caused<'KeyAdded'>;
    return { ...executed, body: resource.keyView(keyAsAdded(added), { key: resource.keyIfNew(key, added) }) };
  },
});

export const deleteApplicationKey = route({
  method: 'delete',
  path: `${PATH}/:key_id`,
  params: { application_id: resource.idParameter, key_id: keyIdParameter },
  summary: 'Revoke a key of an Application',
  permission: 'application:update',
  response: { status: 204, description: 'The key is revoked.' },
  handle: (request, dependencies) =>
    resource.changeApplication(
      request,
      dependencies,
      revokeKey(keyIdOf(request), resource.applicationIdOf(request)),
    ),
});

interface WireRegeneration extends resource.WireKey {
  readonly grace_seconds?: number | null;
}

export const regenerateApplicationKey = route({
  method: 'post',
  path: '/applications/:id/regenerate',
  params: { id: resource.idParameter },
  summary: 'Replace the keys of an Application by a new one',
  permission: 'application:update',
  body: bodyCheck<WireRegeneration>(
    {
      title: 'KeyRegeneration',
      type: 'object',
      properties: {
        ...resource.keyProperties,
        grace_seconds: described(
          { type: ['integer', 'null'], minimum: 0, maximum: MAX_GRACE_SECONDS },
          'How long the existing keys keep working. Default: 0, they end at once.',
        ),
      },
    },
    resource.keySchema,
    { grace_seconds: 3_600 },
  ),
  response: {
    description: 'The Application, with its new key. The response to a repeated request has no `key`.',
    schema: resource.applicationSchema,
    showsKey: true,
    etag: true,
  },
  handle: async (request, dependencies) => {
    const { key, input } = newKey(request.tenantId, resource.keyInputOf(request.body));
    const decide = regenerateKey(resource.applicationIdOf(request), input, request.body.grace_seconds ?? 0);
    const executed = await resource.changeApplication(request, dependencies, decide);
    const added = executed.events.at(-1) as Caused<'KeyAdded'>;
    return resource.changedApplication(request, executed, resource.keyIfNew(key, added));
  },
});

const KEY_STATES = ['active', 'revoked', 'expired', 'application_deleted'];

/** From the tenant's stream, which knows revoked keys too. */
export const findApplicationKey = route<{ readonly digest: string }>({
  method: 'post',
  path: '/keys/find',
  summary: 'Find a key by its digest',
  permission: 'application:read',
  isRead: true,
  body: bodyCheck(
    {
      title: 'KeyDigest',
      type: 'object',
      properties: {
        digest: described(
          { type: 'string', pattern: '^[0-9a-fA-F]{64}$' },
          'The SHA-256 of the key, in hex.',
          '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
        ),
      },
      required: ['digest'],
    },
    {},
    { digest: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae' },
  ),
  response: {
    description: 'The key, whatever its state.',
    schema: record('FoundKey', {
      application_id: described(uuid, 'The Application that it belongs to, or did.'),
      key_id: described(uuid, 'The id of the key.'),
      state: described(oneOf(KEY_STATES), 'Only an active key is accepted.'),
    }),
  },
  handle: async ({ tenantId, at, deadline, body }, { ledger }) => {
    const digest = body.digest.toLowerCase();
    const found = await ledger.ask(tenantId, deadline, (tenant) => {
      if (tenant.status !== 'active') throw keyRefused('tenant_deleted');
      const key = tenant.keys.get(digest);
      const { status } = keyStatusIn(tenant, digest, at);
      return key && { application_id: key.application_id, key_id: key.id, status };
    });
    if (found === undefined) throw fault('key_not_found', 'This Tenant has no key with this digest.');
    const { status, ...key } = found;
    return { body: { ...key, state: status === 'valid' ? 'active' : status } };
  },
});
