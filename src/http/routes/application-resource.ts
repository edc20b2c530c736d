import { findLiveApplication, findLiveKeys } from '../../../projections/application-pages';
import { findLastUses } from '../../../projections/key-days';
import type { Reader } from '../../../projections/projector';
import type { NewKey } from '../../domain/application-keys';
import { liveKeysOf } from '../../domain/authority';
import type { Caused } from '../../domain/events';
import { applicationTypes } from '../../domain/permissions';
import {
  mustBeActive,
  mustHave,
  type ActiveTenant,
  type Application,
  type ApplicationDocument,
  type Decide,
  type KeyDocument,
} from '../../domain/tenant';
import { parseMoment, uuidFrom } from '../../domain/texts';
import { fault } from '../../fault';
import { digestOf } from '../../ledger/api-key';
import type { Executed } from '../../ledger/ledger';
import type { ApiDependencies } from '../context';
import type { RouteRequest } from '../route';
import { described, listOf, membersOf, moment, record, text, uuid, oneOf } from '../schema';

const KEY = 'The key itself, once: only the response to the request that created it has it.';

export const keySchema = record(
  'ApplicationKey',
  {
    id: described(uuid, 'The id of the key, which is not the key itself.'),
    key: described(text, KEY),
    name: described(text, 'Its name.', 'Nightly import'),
    created_by: described(uuid, 'The user or the Application that created it.'),
    created_at: described(moment, 'When it was created.'),
    expires_at: described(moment, 'When it expires; absent: never.'),
    last_used_at: described(
      moment,
      'When it was last used: exactly if this instance served it, otherwise to the day; absent: never, or in the response to a write.',
    ),
  },
  ['key', 'name', 'created_by', 'expires_at', 'last_used_at'],
);

export const applicationSchema = record(
  'Application',
  {
    id: described(uuid, 'The id of the Application.'),
    tenant_id: described(uuid, 'The Tenant that it belongs to.'),
    name: described(text, 'Its name.', 'Shop'),
    type: described(oneOf(applicationTypes), 'What kind of permissions it may hold.', 'private'),
    permissions: described(listOf(text), 'What it may do.', ['token:create', 'token:read']),
    key: described(text, KEY),
    key_id: described(uuid, 'The key of the request; only in the response to `GET /applications/key`.'),
    keys: described(listOf(keySchema), 'Its keys that are neither revoked nor expired, oldest first.'),
    created_by: described(uuid, 'The user or the Application that created it.'),
    created_at: described(moment, 'When it was created.'),
    modified_by: described(uuid, 'The user or the Application that modified it last.'),
    modified_at: described(moment, 'When the request arrived that modified it last.'),
  },
  ['key', 'key_id', 'created_by', 'modified_by', 'modified_at'],
);

/** Undefined members are omitted from the JSON. */
export const keyView = (
  key: KeyDocument,
  more: { readonly key?: string | undefined; readonly last_used_at?: string | undefined } = {},
) => membersOf(keySchema, { ...key, ...more });

/** The only view of an Application, whether the read models or a decision know it. */
export const applicationView = (
  tenant_id: string,
  application: ApplicationDocument,
  keys: readonly ReturnType<typeof keyView>[],
  key?: string,
) => membersOf(applicationSchema, { ...application, tenant_id, keys, key });

/** As decisions see it at this time, with its new key if there is one. */
export const applicationNow = (tenantId: string, application: Application, at: string, key?: string) => {
  const keys = liveKeysOf(application, at).map((live) => keyView(live));
  return applicationView(tenantId, application, keys, key);
};

export const applicationNotFound = () =>
  fault('application_not_found', 'This Tenant has no Application with this id.');

/** The id in the path. Anything but a UUID is not found. */
export const applicationIdOf = ({ params }: RouteRequest): string => {
  const id = uuidFrom(params['application_id'] ?? params['id']);
  if (id === undefined) throw applicationNotFound();
  return id;
};

const APPLICATION_ID = 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee';
export const idParameter = described(uuid, 'The id of the Application.', APPLICATION_ID);

/** A new key in a request body. */
export interface WireKey {
  readonly name?: string | null;
  readonly expires_at?: string | null;
}

export const keyProperties = {
  name: described({ type: ['string', 'null'], validName: true }, 'What the key is called.'),
  expires_at: described({ ...moment, type: ['string', 'null'] }, 'When the key expires. Default: never.'),
};

export const keyInputOf = ({ name, expires_at: expires }: WireKey): Pick<NewKey, 'name' | 'expiresAt'> => ({
  name: name ?? undefined,
  expiresAt: parseMoment(expires?.replace(' ', '+') ?? ''),
});

/** Undefined if the request is a repeat: the original key is not stored anywhere. */
export const keyIfNew = (key: string, added: Caused<'KeyAdded'> | undefined): string | undefined =>
  added?.data.digest === digestOf(key) ? key : undefined;

export const liveKeyViews = async (
  reader: Reader,
  { tenantId, at }: RouteRequest,
  { keyUses }: ApiDependencies,
  applicationId: string,
) => {
  const keys = await findLiveKeys(reader, tenantId, applicationId, at);
  const lastUses = await findLastUses(reader, tenantId, applicationId);
  const lastUseOf = (id: string): string | undefined =>
    [lastUses.get(id) ?? [], keyUses.lastUse(tenantId, id) ?? []].flat().toSorted().at(-1);
  return keys.map((key) => keyView(key, { last_used_at: lastUseOf(key.id) }));
};

/** An Application with its keys, if it is live. */
export const findWithKeys = (request: RouteRequest, dependencies: ApiDependencies, id: string) =>
  request.read(async (reader) => {
    const application = await findLiveApplication(reader, request.tenantId, id);
    return application && { application, keys: await liveKeyViews(reader, request, dependencies, id) };
  });

/** The one in the path. */
export const liveApplication = async (request: RouteRequest, dependencies: ApiDependencies) => {
  const found = await findWithKeys(request, dependencies, applicationIdOf(request));
  if (found === undefined) throw applicationNotFound();
  return found;
};

/** A change to an Application or its keys. `If-Match` refers to the Application in either case. */
export const changeApplication = (request: RouteRequest, { ledger }: ApiDependencies, decide: Decide) => {
  const tag = (tenant: ActiveTenant): string => String(mustHave(tenant, applicationIdOf(request)).revision);
  return ledger.execute({ ...request, decide, resource: { of: 'Application', tag } });
};

/** An Application as a change left it, with its new key if there is one. */
export const changedApplication = (request: RouteRequest, executed: Executed, key?: string) => {
  const application = mustHave(mustBeActive(executed.tenant), applicationIdOf(request));
  const body = applicationNow(request.tenantId, application, request.at, key);
  return { ...executed, body, etag: String(application.revision) };
};
