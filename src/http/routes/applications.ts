import { randomUUID } from 'node:crypto';
import { findApplications, isWantedBy, type ApplicationFilter } from '../../../projections/application-pages';
import type { StoredApplication } from '../../../projections/applications';
import type { Reader } from '../../../projections/projector';
import { yieldToEventLoop } from '../../async/clock';
import { tenantAt } from '../../audit/past-tenant';
import {
  createApplication as decideToCreate,
  deleteApplication as decideToDelete,
  updateApplication as decideToUpdate,
} from '../../domain/applications';
import type { Caused } from '../../domain/events';
import { applicationTypes, type ApplicationType } from '../../domain/permissions';
import { applicationAsCreated, keyAsAdded } from '../../domain/tenant';
import { fault } from '../../fault';
import { newKey } from '../../ledger/api-key';
import type { ApiDependencies } from '../context';
import { choiceParameter, severalOf, uuidParameter } from '../query-parameters';
import { route, type RouteRequest } from '../route';
import { listOf, described, record, type Schema, oneOf } from '../schema';
import { bodyCheck } from '../validation';
import * as resource from './application-resource';
import { asOfParameter, readPast } from './as-of';
import { cursorRefused, pageParameters, paginationSchema, paging } from './pagination';

/** How many Applications are loaded before yielding to the event loop: each may have many keys. */
const BATCH_SIZE = 10;

const liveApplicationViews = async (
  reader: Reader,
  request: RouteRequest,
  dependencies: ApiDependencies,
  applications: readonly StoredApplication[],
) => {
  const viewOf = async (application: StoredApplication) => {
    const keys = await resource.liveKeyViews(reader, request, dependencies, application.id);
    return resource.applicationView(request.tenantId, application, keys);
  };
  const views: Awaited<ReturnType<typeof viewOf>>[] = [];
  for (let from = 0; from < applications.length; from += BATCH_SIZE) {
    views.push(...(await Promise.all(applications.slice(from, from + BATCH_SIZE).map(viewOf))));
    await yieldToEventLoop();
  }
  return views;
};

/** A cursor names the revision that created the last Application shown, or, of a past state, how many were shown. */
const numberIn = (place: string | undefined, form: RegExp): number | undefined => {
  if (place === undefined) return undefined;
  const [, number] = form.exec(place) ?? [];
  if (number === undefined) throw cursorRefused();
  return Number(number);
};
const REVISION = /^([0-9]{1,15})$/;
const SHOWN = /^after ([0-9]{1,15})$/;

interface PastQuestion {
  readonly filter: ApplicationFilter;
  readonly skip: number;
  readonly size: number;
}

/**
 * Folds the tenant's own events, so the cost grows with their number. Only an active tenant has any: nobody has access to
 * a deleted one.
 */
const pastApplications = (
  request: RouteRequest,
  dependencies: ApiDependencies,
  asOf: string,
  { filter, skip, size }: PastQuestion,
) =>
  readPast(asOf, request, dependencies, async (ledgerLog, moment) => {
    const tenant = await tenantAt(ledgerLog, request.tenantId, moment);
    const all = tenant.status === 'active' ? [...tenant.applications.values()] : [];
    const matching = all.filter(isWantedBy(filter));
    const data = matching
      .slice(skip, skip + size)
      .map((one) => resource.applicationNow(request.tenantId, one, moment.time));
    return { data, total: matching.length };
  });

export const listApplications = route({
  method: 'get',
  path: '/applications',
  summary: 'List Applications',
  permission: 'application:read',
  query: {
    id: severalOf(
      uuidParameter('Only these Applications; may be repeated.', 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'),
    ),
    type: severalOf(
      choiceParameter('Only Applications of these types; may be repeated.', applicationTypes, 'private'),
    ),
    as_of: asOfParameter('The Applications as they were'),
    ...pageParameters('Applications'),
  },
  response: {
    description: 'A page of the Applications of the Tenant, in the order in which they were created.',
    schema: record('ApplicationPage', {
      pagination: described(paginationSchema, 'The position of this page.'),
      data: described(listOf(resource.applicationSchema), 'The Applications.'),
    }),
  },
  reads: true,
  handle: async (request, dependencies) => {
    const { id: ids, type: types, as_of: asOf } = request.query;
    const filter = { ids, types };
    const { page, size, place, shown } = paging(request);
    if (asOf !== undefined) {
      const skip = (numberIn(place, SHOWN) ?? 0) + (page - 1) * size;
      const { data, total } = await pastApplications(request, dependencies, asOf, { filter, skip, size });
      return shown(data, total, skip + size >= total ? undefined : `after ${skip + size}`);
    }
    const question = { filter, page, size, after: numberIn(place, REVISION) };
    const { data, total, last } = await request.read(async (reader) => {
      const { applications, ...found } = await findApplications(reader, request.tenantId, question);
      return { ...found, data: await liveApplicationViews(reader, request, dependencies, applications) };
    });
    return shown(data, total, last === undefined ? undefined : String(last));
  },
});

const applicationResponse = { description: 'The Application.', schema: resource.applicationSchema };

export const getOwnApplication = route({
  method: 'get',
  path: '/applications/key',
  summary: 'Get the Application that owns the key',
  // Without an entity tag: it shows which key was used.
  response: applicationResponse,
  reads: true,
  handle: async (request, dependencies) => {
    const { id } = request.application;
    const found = await resource.findWithKeys(request, dependencies, id);
    if (found === undefined)
      throw fault('read_models_unavailable', 'The read models do not show this Application.');
    const view = resource.applicationView(request.tenantId, found.application, found.keys);
    return { body: { ...view, key_id: request.keyId } };
  },
});

export const getApplication = route({
  method: 'get',
  path: '/applications/:id',
  params: { id: resource.idParameter },
  summary: 'Get an Application',
  permission: 'application:read',
  query: { as_of: asOfParameter('The Application as it was, without `last_used_at`') },
  response: { ...applicationResponse, etag: true },
  reads: true,
  handle: async (request, dependencies) => {
    const { as_of: asOf } = request.query;
    if (asOf !== undefined) {
      const question = { filter: { ids: [resource.applicationIdOf(request)] }, skip: 0, size: 1 };
      const { data } = await pastApplications(request, dependencies, asOf, question);
      if (data[0] === undefined) throw resource.applicationNotFound();
      return { body: data[0] };
    }
    const { application, keys } = await resource.liveApplication(request, dependencies);
    const body = resource.applicationView(request.tenantId, application, keys);
    return { body, etag: String(application.revision) };
  },
});

const permissionsProperty: Schema = {
  type: ['array', 'null'],
  items: { type: 'string', maxLength: 100 },
};

/** Other services of this family have them. Ignoring them would make callers believe in a restriction. */
const rulesProperty = described(
  { type: ['array', 'null'], items: {}, maxItems: 0 }, // generators need `items`
  'Access rules are not supported: absent, null or empty.',
);

interface WireApplication extends Omit<resource.WireKey, 'name'> {
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions?: readonly string[] | null;
  readonly create_key?: boolean | null;
}

const creationBody = bodyCheck<WireApplication>(
  {
    title: 'ApplicationCreation',
    type: 'object',
    properties: {
      name: described({ type: 'string', validName: true }, 'Its name.'),
      type: described(oneOf(applicationTypes), 'What kind of permissions it may hold; it cannot be changed.'),
      permissions: described(permissionsProperty, 'What it may do. Default: nothing.'),
      create_key: described(
        { type: ['boolean', 'null'] },
        'Whether a first key is created with it. Default: true.',
      ),
      expires_at: resource.keyProperties.expires_at,
      rules: rulesProperty,
    },
    required: ['name', 'type'],
  },
  resource.applicationSchema,
  { name: 'Shop', type: 'private', permissions: ['token:create', 'token:read'] },
);

export const createApplication = route({
  method: 'post',
  path: '/applications',
  summary: 'Create an Application',
  permission: 'application:create',
  body: creationBody,
  isUnconditional: true,
  response: {
    status: 201,
    description: 'The Application, with its first key. The response to a repeated request has no `key`.',
    schema: resource.applicationSchema,
    showsKey: true,
    etag: true,
  },
  handle: async (request, { ledger }) => {
    const { tenantId } = request;
    const { name, type, permissions, create_key: createsKey, expires_at = null } = request.body;
    const { key, input } = newKey(tenantId, resource.keyInputOf({ expires_at }));
    const decide = decideToCreate({
      applicationId: randomUUID(),
      name,
      type,
      permissions: permissions ?? [],
      ...(createsKey === false ? {} : { key: input }),
    });
    const executed = await ledger.execute({ ...request, decide });
    const [created, added] = executed.events as readonly [Caused<'ApplicationCreated'>, Caused<'KeyAdded'>?];
    const keys = added === undefined ? [] : [resource.keyView(keyAsAdded(added))];
    const body = resource.applicationView(
      tenantId,
      applicationAsCreated(created),
      keys,
      resource.keyIfNew(key, added),
    );
    return { ...executed, body, etag: String((added ?? created).revision) };
  },
});

interface WireUpdate {
  readonly name: string;
  readonly permissions?: readonly string[] | null;
  readonly type?: ApplicationType | null;
}

const updateBody = bodyCheck<WireUpdate>(
  {
    title: 'ApplicationUpdate',
    type: 'object',
    properties: {
      name: described({ type: 'string', validName: true }, 'Its name.'),
      permissions: described(permissionsProperty, 'All that it may do. Default: as before.'),
      type: described({ enum: [...applicationTypes, null] }, 'Its type, which cannot be changed.'),
      rules: rulesProperty,
    },
    required: ['name'],
  },
  resource.applicationSchema,
  { name: 'Shop', permissions: ['token:create'] },
);

export const updateApplication = route({
  method: 'put',
  path: '/applications/:id',
  params: { id: resource.idParameter },
  summary: 'Update an Application',
  permission: 'application:update',
  body: updateBody,
  response: { ...applicationResponse, description: 'The updated Application.', etag: true },
  handle: async (request, dependencies) => {
    const { name, permissions, type } = request.body;
    const update = { name, permissions: permissions ?? undefined, type: type ?? undefined };
    const decide = decideToUpdate(resource.applicationIdOf(request), update);
    return resource.changedApplication(
      request,
      await resource.changeApplication(request, dependencies, decide),
    );
  },
});

export const deleteApplication = route({
  method: 'delete',
  path: '/applications/:id',
  params: { id: resource.idParameter },
  summary: 'Delete an Application and its keys',
  permission: 'application:delete',
  response: { status: 204, description: 'The Application is deleted, and its keys are refused.' },
  handle: (request, dependencies) =>
    resource.changeApplication(request, dependencies, decideToDelete(resource.applicationIdOf(request))),
});
