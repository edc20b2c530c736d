import type { Caused } from '../../domain/events';
import { parseMoment } from '../../domain/moment';
import { applicationTypes } from '../../domain/permissions';
import { isRefusal, type RefusalCode } from '../../domain/refusal';
import { mustHave, type ActiveTenant } from '../../domain/tenant';
import { fault } from '../../fault';
import type { NewKey } from '../../domain/application-keys';
import type { Resource } from '../../ledger/ledger';
import { digestOf } from '../../ledger/api-key';
import { uuidFrom } from '../../uuid';
import { choiceParameter, formats, invalid, listParameter, textParameter } from '../request/validation';
import type { RouteRequest } from './route';
import { applicationOfTenant, applicationTag } from './application-view';
import { described, uuid, type Schema } from './schema';

/** Shared by the routes of Applications and their keys. */

export const applicationNotFound = () =>
  fault('application_not_found', 'This Tenant has no Application with this id.');
export const keyNotFound = () => fault('key_not_found', 'This Application has no key with this id.');

/** The id in the path. Anything but a UUID is not found. */
export const applicationIdOf = ({ params }: RouteRequest<unknown>): string => {
  const id = uuidFrom(params['application_id'] ?? params['id']);
  if (id === undefined) throw applicationNotFound();
  return id;
};

export const keyIdOf = ({ params }: RouteRequest<unknown>): string => {
  const id = uuidFrom(params['key_id']);
  if (id === undefined) throw keyNotFound();
  return id;
};

export const idParameter: Schema = {
  description: 'The id of the Application.',
  schema: uuid,
  example: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
};
export const keyIdParameter: Schema = {
  description: 'The id of the key.',
  schema: uuid,
  example: 'bbbbbbbb-cccc-4ddd-8eee-ffffffffffff',
};

/** `If-Match` refers to the Application, even in requests about its keys. */
export const applicationResource = (applicationId: string, { at }: RouteRequest<unknown>): Resource => ({
  of: 'Application',
  tag: (tenant: ActiveTenant) => {
    const application = mustHave(tenant, applicationId);
    return applicationTag(application.changedAt, applicationOfTenant(tenant, application, at));
  },
});

/** A new key in a request body. */
export interface WireKey {
  readonly name?: string | null;
  readonly expires_at?: string | null;
}

export const keyProperties = {
  name: described({ type: ['string', 'null'], validName: true }, 'What the key is called.'),
  expires_at: described(
    { type: ['string', 'null'], format: 'date-time' },
    'When the key expires. Default: never.',
  ),
};

export const keyInputOf = ({ name, expires_at: text }: WireKey): Pick<NewKey, 'name' | 'expiresAt'> => ({
  name: name ?? undefined,
  expiresAt: parseMoment(text?.replace(' ', '+') ?? ''),
});

/** Undefined if the request is a repeat: the original key is not stored anywhere. */
export const keyIfNew = (key: string, added: Caused<'KeyAdded'> | undefined): string | undefined =>
  added?.data.digest === digestOf(key) ? key : undefined;

const fields: Partial<Record<RefusalCode, string>> = {
  permission_unknown: 'permissions',
  permission_not_assignable: 'permissions',
  name_invalid: 'name',
  expiry_invalid: 'expires_at',
};

/** Reports a refusal caused by a field of the body like a violation of the schema. */
export const orInvalid = async <T>(deciding: Promise<T>): Promise<T> => {
  try {
    return await deciding;
  } catch (error) {
    const field = isRefusal(error) ? fields[error.code] : undefined;
    if (field === undefined) throw error;
    throw invalid({ [field]: [`is refused: ${(error as Error).message.replace(/\.$/, '')}`] });
  }
};

/** In any case: tools print digests in either. */
export const keyDigestParameter = (description: string) => {
  const parameter = textParameter(description, '5f0a6c1e');
  return {
    ...parameter,
    schema: { type: 'string', pattern: '^[0-9A-Fa-f]{8,64}$' },
    rule: 'must be the first 8 to 64 characters of the SHA-256 of a key, in hex',
    read: (text: string) => text.toLowerCase(),
  };
};

/** List filters that may be repeated. */
export const idsParameter = (description: string, example: string) =>
  listParameter<string>({
    description,
    schema: uuid,
    rule: formats.uuid.rule,
    example,
    read: (text) => text.toLowerCase(),
  });

export const typesParameter = (description: string) =>
  listParameter(choiceParameter(description, applicationTypes, 'private'));
