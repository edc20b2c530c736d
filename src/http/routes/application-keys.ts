import { keyAsAdded } from '../../../projections/applications';
import { addKey, regenerateKey, revokeKey } from '../../domain/application-keys';
import type { Caused } from '../../domain/events';
import { mustBeActive, mustHave } from '../../domain/tenant';
import { newKey } from '../../ledger/new-key';
import { bodyCheck, queryCheck } from '../request/validation';
import {
  applicationIdOf,
  conditionOn,
  idParameter,
  idsParameter,
  keyIdOf,
  keyIdParameter,
  keyIfNew,
  keyNotFound,
  keyProperties,
  keyInputOf,
  orInvalid,
  typesParameter,
  type WireKey,
} from './application-requests';
import {
  applicationExample,
  applicationOfTenant,
  applicationSchema,
  keyExample,
  keySchema,
  keyView,
} from './application-view';
import { forceQuery, liveApplication, liveKeyViews } from './applications';
import { commandOf } from './command';
import { ok, route, type Asked, type RouteParts } from './route';
import { listOf, meaning } from './schema';

const TAG = 'Applications';
const FROM = 'applications';
const PATH = '/applications/:id/keys';

/** The keys that an Application has now. */
const keysIn = async (asked: Asked<unknown>, parts: RouteParts) => {
  const application = await liveApplication(asked, parts);
  return { application, keys: await liveKeyViews(asked, parts, application.id) };
};

const listQuery = queryCheck(
  {
    id: idsParameter('Only these keys; may be repeated.', 'bbbbbbbb-cccc-4ddd-8eee-ffffffffffff'),
    type: typesParameter('Only if the Application has one of these types; may be repeated.'),
  },
  'refused',
);

export const listKeys = route<undefined, ReturnType<typeof listQuery>>({
  method: 'get',
  path: PATH,
  params: { id: idParameter },
  operationId: 'listApplicationKeys',
  summary: 'List the keys of an Application',
  tag: TAG,
  permission: 'application:read',
  query: listQuery,
  answer: {
    status: 200,
    description: 'Its keys that are neither revoked nor expired, oldest first.',
    schema: listOf(keySchema),
    example: [keyExample],
  },
  from: FROM,
  handle: async (asked, parts) => {
    const { id: ids, type: types } = asked.query;
    const { application, keys } = await keysIn(asked, parts);
    const isOfType = types?.includes(application.type) ?? true;
    return ok(isOfType ? keys.filter(({ id }) => ids?.includes(id) ?? true) : []);
  },
});

export const getKey = route({
  method: 'get',
  path: `${PATH}/:key_id`,
  params: { id: idParameter, key_id: keyIdParameter },
  operationId: 'getApplicationKey',
  summary: 'Get a key of an Application',
  tag: TAG,
  permission: 'application:read',
  answer: { status: 200, description: 'What is known of the key.', schema: keySchema, example: keyExample },
  from: FROM,
  handle: async (asked, parts) => {
    const { keys } = await keysIn(asked, parts);
    const keyId = keyIdOf(asked);
    const key = keys.find(({ id }) => id === keyId);
    if (key === undefined) throw keyNotFound();
    return ok(key);
  },
});

const keyCreation = bodyCheck<WireKey>(
  { title: 'ApplicationKeyCreation', type: 'object', properties: keyProperties },
  { name: 'Nightly import', expires_at: '2031-01-31T12:00:00Z' },
  { isOptional: true },
);

export const createKey = route({
  method: 'post',
  path: PATH,
  params: { id: idParameter },
  operationId: 'createApplicationKey',
  summary: 'Add a key to an Application',
  tag: TAG,
  permission: 'application:update',
  body: keyCreation,
  answer: {
    status: 201,
    description: 'The new key. The answer to a repeated request has no `key`.',
    schema: keySchema,
    example: keyExample,
  },
  handle: async (asked, { ledger }) => {
    const id = applicationIdOf(asked);
    const { key, input } = newKey(asked.tenantId, keyInputOf(asked.body), asked.at);
    const command = commandOf(asked, addKey(id, input), conditionOn(id));
    const { events, position } = await orInvalid(ledger.execute(command));
    const added = events.at(-1) as Caused<'KeyAdded'>;
    const body = keyView(keyAsAdded(added), { key: keyIfNew(key, added) });
    return { status: 201, body, position };
  },
});

export const removeKey = route<undefined, ReturnType<typeof forceQuery>>({
  method: 'delete',
  path: `${PATH}/:key_id`,
  params: { id: idParameter, key_id: keyIdParameter },
  operationId: 'deleteApplicationKey',
  summary: 'Revoke a key of an Application',
  tag: TAG,
  permission: 'application:update',
  query: forceQuery,
  answer: { status: 204, description: 'The key is revoked.' },
  handle: async (asked, { ledger }) => {
    const applicationId = applicationIdOf(asked);
    const decide = revokeKey(keyIdOf(asked), { applicationId, ...asked.query });
    const { position } = await ledger.execute(commandOf(asked, decide, conditionOn(applicationId)));
    return { status: 204, position };
  },
});

/** A year. */
const MAX_GRACE_SECONDS = 31_536_000;

interface WireRegeneration extends WireKey {
  readonly grace_seconds?: number | null;
}

const regeneration = bodyCheck<WireRegeneration>(
  {
    title: 'KeyRegeneration',
    type: 'object',
    properties: {
      ...keyProperties,
      grace_seconds: meaning(
        { type: ['integer', 'null'], minimum: 0, maximum: MAX_GRACE_SECONDS },
        'How long the existing keys keep working; left out: they end at once.',
      ),
    },
  },
  { grace_seconds: 3_600 },
  { isOptional: true },
);

export const regenerateKeys = route({
  method: 'post',
  path: '/applications/:id/regenerate',
  params: { id: idParameter },
  operationId: 'regenerateApplicationKey',
  summary: 'Replace the keys of an Application by a new one',
  tag: TAG,
  permission: 'application:update',
  body: regeneration,
  answer: {
    status: 200,
    description: 'The Application, with its new key. The answer to a repeated request has no `key`.',
    schema: applicationSchema,
    example: applicationExample,
    etag: true,
  },
  handle: async (asked, { ledger }) => {
    const id = applicationIdOf(asked);
    const { key, input } = newKey(asked.tenantId, keyInputOf(asked.body), asked.at);
    const decide = regenerateKey(id, input, asked.body.grace_seconds ?? 0);
    const command = commandOf(asked, decide, conditionOn(id));
    const { tenant, events, position } = await orInvalid(ledger.execute(command));
    const active = mustBeActive(tenant);
    const application = mustHave(active, id);
    const added = events.at(-1) as Caused<'KeyAdded'>;
    const view = applicationOfTenant(active, application, asked.at, keyIfNew(key, added));
    return { ...ok(view, application.changedAt), position };
  },
});
