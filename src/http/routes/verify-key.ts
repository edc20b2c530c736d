import { holds, permissionsOf } from '../../domain/authority';
import type { Client } from '../../domain/events';
import { applicationTypes, permissions } from '../../domain/permissions';
import { isRefusal } from '../../domain/refusal';
import { digestOf, tenantOfKey, type Identity, type PresentedKey } from '../../ledger/api-key';
import { countedAddress } from '../../limits/client-address';
import { TIMES } from '../../times';
import type { ApiDependencies } from '../context';
import { choiceParameter } from '../query-parameters';
import { serviceRoute, type ServiceRequest } from '../route';
import { keyOf } from '../run-route';
import { described, listOf, moment, record, text, uuid, oneOf } from '../schema';
import { bodyCheck, invalid } from '../validation';

const ended = ['expired', 'revoked', 'application_deleted', 'tenant_deleted'] as const;
const reasons = ['malformed', 'unknown', ...ended] as const;
type Reason = (typeof reasons)[number];

const permissionNames = permissions.map(({ type }) => type);

/** Its use is recorded as this operation, whichever way it is verified. */
const OPERATION = 'verifyKey';

interface Question {
  readonly key: string;
  readonly permission?: string | undefined;
  readonly client?: Client | undefined;
}

type Answer =
  { readonly reason: Reason } | { readonly identity: Identity; readonly isAllowed: boolean | undefined };

/** How a request with this key would fare. Recorded as a use or a refusal of that key. */
const verify = async (
  { key, permission, client }: Question,
  { at, deadline }: Pick<ServiceRequest, 'at' | 'deadline'>,
  { ledger, keyUses }: ApiDependencies,
): Promise<Answer> => {
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) return { reason: 'malformed' };
  if (!(await ledger.exists(tenantId, deadline))) return { reason: 'unknown' };
  const presented: PresentedKey = { tenantId, digest: digestOf(key), at, deadline };
  const isHeldBy = ({ application }: Identity) => permission === undefined || holds(application, permission);
  try {
    let identity = await ledger.identify(presented, TIMES.keyAgeMs);
    // It may just have been granted.
    if (!isHeldBy(identity)) identity = await ledger.identify(presented, 0);
    const isAllowed = isHeldBy(identity);
    const refused = { reason: 'permission_missing', permissions: [String(permission)] } as const;
    keyUses.count(keyOf(identity), at, isAllowed ? { operation: OPERATION } : refused, client);
    return { identity, isAllowed: permission === undefined ? undefined : isAllowed };
  } catch (error) {
    if (!isRefusal(error) || error.code !== 'key_refused') throw error;
    const { access } = error;
    if (access !== undefined && 'key' in access)
      keyUses.count({ tenantId, ...access.key }, at, access, client);
    return { reason: error.more['reason'] as Reason };
  }
};

const verified = {
  valid: described({ type: 'boolean' }, 'Whether a request with the key would be accepted.', true),
  reason: described(oneOf(reasons), 'Why not.'),
  tenant_id: described(uuid, 'The Tenant of the key.', '11111111-2222-4333-8444-555555555555'),
  application_id: described(uuid, 'Its Application.', '22222222-2222-4333-8444-555555555555'),
  application_type: described(oneOf(applicationTypes), 'The type of that.', 'private'),
  key_id: described(uuid, 'The id of the key.', 'bbbbbbbb-cccc-4ddd-8eee-ffffffffffff'),
  permissions: described(listOf(text), 'What it may, as far as the type may hold it.', ['token:read']),
  expires_at: described(moment, 'When it expires, if it does.'),
  allowed: described({ type: 'boolean' }, 'Whether it has the permission that was asked for.', true),
  as_of: described(moment, 'All this was so then. Keep it for at most a second.', '2026-01-31T12:00:00.000Z'),
};
const onlyOfValidOrNot = Object.keys(verified).filter((name) => name !== 'valid');
const verifiedSchema = record('VerifiedKey', verified, onlyOfValidOrNot);

const verifiedView = ({ identity, isAllowed }: Extract<Answer, { identity: Identity }>, asOf: string) => {
  const { application, tenantId, keyId, expiresAt } = identity;
  const usable = permissionsOf(application.type).map(({ type }) => type);
  return {
    valid: true,
    tenant_id: tenantId,
    application_id: application.id,
    application_type: application.type,
    key_id: keyId,
    permissions: usable.filter((permission) => holds(application, permission)),
    expires_at: expiresAt,
    allowed: isAllowed,
    as_of: asOf,
  };
};

interface WireQuestion {
  readonly key: string;
  readonly permission?: string;
  readonly client_address?: string;
}

const question = bodyCheck<WireQuestion>(
  {
    title: 'KeyToVerify',
    type: 'object',
    properties: {
      key: described(text, 'The key that a client has sent.'),
      permission: described(oneOf(permissionNames), 'What the client wants to do.', 'token:read'),
      client_address: described(
        text,
        "The client's IP address, for the record of what keys did.",
        '192.0.2.1',
      ),
    },
    required: ['key'],
  },
  {},
  { key: 'key_…', permission: 'token:read' },
);

const addressOf = ({ client_address: sent }: WireQuestion): string | undefined => {
  const address = sent === undefined ? undefined : countedAddress(sent);
  if (sent !== undefined && address === undefined)
    throw invalid({ client_address: ['must be an IP address, for example 192.0.2.1'] });
  return address;
};

export const verifyKey = serviceRoute<WireQuestion>({
  method: 'post',
  path: '/keys/verify',
  summary: 'Ask whether a key is valid, and what it may do',
  service: 'verify',
  isRead: true,
  body: question,
  response: { description: 'How a request with the key would fare.', schema: verifiedSchema },
  handle: async (request, dependencies) => {
    const { key, permission } = request.body;
    const address = addressOf(request.body);
    const client = address === undefined ? undefined : { address, reportedBy: request.service.id };
    const answer = await verify({ key, permission, client }, request, dependencies);
    if ('reason' in answer) return { body: { valid: false, reason: answer.reason } };
    return { body: verifiedView(answer, dependencies.ledger.asOf(answer.identity.tenantId)) };
  },
});

export const checkKey = serviceRoute({
  method: 'get',
  path: '/keys/verify',
  summary: 'Ask the same without bodies, as proxies do before they forward',
  service: 'verify',
  header: 'verifyKey',
  query: { permission: choiceParameter('What the client wants to do.', permissionNames, 'token:read') },
  response: {
    description: 'The key is valid, and has the permission.',
    headers: ['tenantId', 'applicationId', 'keyId'],
  },
  handle: async (request, dependencies) => {
    const { headers: names } = dependencies.settings;
    const key = request.header(names.verifyKey) ?? '';
    const answer = await verify({ key, permission: request.query.permission }, request, dependencies);
    if ('reason' in answer)
      return { status: 401, headers: { 'WWW-Authenticate': 'ApiKey realm="tenant-ledger"' } };
    const { tenantId, application, keyId } = answer.identity;
    const { id } = application;
    const headers = { [names.tenantId]: tenantId, [names.applicationId]: id, [names.keyId]: keyId };
    return answer.isAllowed === false ? { status: 403, headers } : { headers };
  },
});
