import { Readable } from 'node:stream';
import type { Reader } from '../../projections/projector';
import { isoNow, monotonicMs } from '../async/clock';
import type { KeyUseRecord } from '../access/key-use-record';
import { holds, keyRefused, mustHold } from '../domain/authority';
import type { Client } from '../domain/events';
import { masked } from '../domain/key-like';
import type { KeyHolder } from '../domain/tenant';
import { isRefusal, type KnownKey } from '../domain/refusal';
import type { Position } from '../event-log/event-log';
import { codeOf, fault } from '../fault';
import { digestOf, tenantOfKey } from '../ledger/api-key';
import type { Identity } from '../ledger/identify';
import { ANSWER_MS } from '../ledger/ledger';
import type { PresentedKey } from '../ledger/request';
import { findParked } from '../projecting/parked-tenants';
import { READ_WITHIN_MS, type ReadModelSet } from '../read-models/read-models';
import { authenticated, headerOf, type ApiContext, type Step } from './context';
import type { ApiDependencies, Stores } from './dependencies';
import { etagOf, ifMatch, isUnchanged } from './request/conditions';
import { idempotencyOf, sentIdempotency } from './request/idempotency';
import { rawBodyOf, type ReadBody } from './request/request-body';
import { queryCheck } from './request/validation';
import {
  mayBeUnchanged,
  takesCondition,
  type Route,
  type RouteRequest,
  type RouteResponse,
} from './routes/route';

/** From the key to the response: what happens to a request with a key, in this order. */

const isRead = ({ method }: ApiContext): boolean =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS';

const presentedKeyOf = (ctx: ApiContext, { settings: { headers } }: ApiDependencies): PresentedKey => {
  const { at, deadline } = ctx.state;
  const key = headerOf(ctx, headers.apiKey);
  if (key === undefined) throw keyRefused('missing');
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) throw keyRefused('malformed');
  const isWrite = !isRead(ctx);
  const request = isWrite ? sentIdempotency(ctx, headers) : undefined;
  return { tenantId, digest: digestOf(key), at, deadline, isWrite, request };
};

/** A key that is accepted for a read was valid at most this long ago. */
export const MAX_READ_AGE_MS = 500;

const identify = async (ctx: ApiContext, dependencies: ApiDependencies): Promise<void> => {
  const presented = presentedKeyOf(ctx, dependencies);
  ctx.state.presented = presented;
  // A key may start a write however long ago it was valid: `execute` checks it at the revision of the append.
  const maxAgeMs = isRead(ctx) ? MAX_READ_AGE_MS : Infinity;
  ctx.state.identity = await dependencies.stores.ledger.identify(presented, maxAgeMs);
};

const knownKeyOf = ({ keyId, application }: Identity): KnownKey => ({ keyId, applicationId: application.id });

/** Counts a request for its key: as a refusal, or else as what the key was used for, whatever came of it. */
export const countRequest = (ctx: ApiContext, keyUses: KeyUseRecord, error?: unknown): void => {
  const { presented, identity, at, clientAddress, operation = ctx.method.toLowerCase() } = ctx.state;
  const refused = isRefusal(error) ? error.access : undefined;
  const key = refused !== undefined && 'key' in refused ? refused.key : identity && knownKeyOf(identity);
  if (presented === undefined || key === undefined) return;
  // It became invalid while the request was handled, and is not known any more.
  if (refused === undefined && codeOf(error) === 'key_refused') return;
  keyUses.count({ ...key, tenantId: presented.tenantId }, at, refused ?? { operation }, clientAddress);
};

/** 401 comes first: an unauthenticated caller must not learn which routes exist. */
export const authenticate =
  (dependencies: ApiDependencies): Step =>
  async (ctx, next) => {
    const { keyUses } = dependencies.stores;
    try {
      await identify(ctx, dependencies);
      await next();
      countRequest(ctx, keyUses);
    } catch (error) {
      countRequest(ctx, keyUses, error);
      throw error;
    }
  };

/** Before a refusal, the key is checked as of now: the permission may just have been granted. */
export const requirePermission = async (
  permission: string,
  application: KeyHolder,
  presented: PresentedKey,
  { ledger }: Stores,
): Promise<void> => {
  if (holds(application, permission)) return;
  mustHold((await ledger.identify(presented, 0)).application, permission);
};

const MAX_USER_AGENT_LENGTH = 256;

/** The address as the limits count it. The user agent is masked: a key may have been sent in it. */
const clientOf = (ctx: ApiContext): Client => {
  const userAgent = headerOf(ctx, 'user-agent');
  const address = ctx.state.clientAddress;
  return userAgent === undefined
    ? { address }
    : { address, userAgent: masked(userAgent.slice(0, MAX_USER_AGENT_LENGTH)) };
};

const goneOf = ({ res }: ApiContext): AbortSignal => {
  const gone = new AbortController();
  if (res.destroyed) gone.abort();
  else res.once('close', () => gone.abort());
  return gone.signal;
};

const noParameters = queryCheck({});

const undeclared = async (): Promise<never> => {
  throw new Error('A route that reads the read models must declare it.');
};
const NO_READER: Reader = { get: undeclared, find: undeclared, countsBefore: undeclared };

const requestOf = (
  ctx: ApiContext,
  route: Route,
  reader: Reader,
  dependencies: ApiDependencies,
): RouteRequest<unknown> => {
  const { headers, recordsClients } = dependencies.settings;
  const { at, deadline, traceId } = ctx.state;
  const { presented, identity } = authenticated(ctx.state);
  const { tenantId, application, keyId } = identity;
  const writes = route.method !== 'get';
  return {
    tenantId,
    application,
    keyId,
    caller: { kind: 'key', digest: presented.digest, applicationId: application.id },
    at,
    deadline,
    traceId,
    client: writes && recordsClients ? clientOf(ctx) : undefined,
    permission: route.permission,
    idempotency: writes ? idempotencyOf(ctx, headers, rawBodyOf(ctx)) : undefined,
    isMet: takesCondition(route) ? ifMatch(headerOf(ctx, 'if-match')) : undefined,
    params: ctx['params'] as RouteRequest<unknown>['params'],
    query: (route.query ?? noParameters)(ctx.querystring),
    body: route.body === undefined ? undefined : route.body(ctx.request.body),
    reader,
    header: (name) => headerOf(ctx, name),
    accepts: (...types) => {
      ctx.vary('Accept');
      return ctx.accepts(...types);
    },
    gaveOut: (eventsGivenOut) =>
      dependencies.stores.keyUses.count(
        { tenantId, ...knownKeyOf(identity) },
        isoNow(),
        { eventsGivenOut },
        ctx.state.clientAddress,
      ),
    gone: () => goneOf(ctx),
  };
};

/**
 * Looks at the read models once; all queries of the request read the set that is found. The tenant may be parked in it at
 * a bad event: then the response only includes what was recorded before, and a header says so.
 */
const lookAtReadModels = async (
  ctx: ApiContext,
  { stores, settings }: ApiDependencies,
): Promise<ReadModelSet> => {
  const { set, control } = await stores.readModels.read();
  ctx.state.lookedMs = monotonicMs();
  if (control.parked === 0) return set;
  const parked = await findParked(set, authenticated(ctx.state).identity.tenantId);
  if (parked === undefined) return set;
  ctx.state.isIncomplete = true;
  ctx.set(settings.headers.completeUntil, parked.recorded_at);
  return set;
};

/** A set may be removed a minute after it was left. */
const mustStillBeThere = ({ state }: ApiContext): void => {
  if (state.lookedMs === undefined || monotonicMs() - state.lookedMs <= READ_WITHIN_MS) return;
  throw fault(
    'read_models_unavailable',
    'The request took too long, and what it has read may be incomplete.',
  );
};

/**
 * Waits until a write is shown by the read models. If it is not by the deadline, it is durable nonetheless, and a header
 * says so.
 */
const awaitShown = async (
  ctx: ApiContext,
  position: Position,
  { stores: { readModels }, settings }: ApiDependencies,
): Promise<void> => {
  const { tenantId } = authenticated(ctx.state).identity;
  const remainingMs = Math.max(0, ctx.state.deadline - ANSWER_MS - monotonicMs());
  const isParked = async (): Promise<boolean> =>
    readModels.mayPark() && (await findParked((await readModels.read()).set, tenantId)) !== undefined;
  const isShown = await readModels
    .reached(position, remainingMs)
    .then(async (reached) => reached && !(await isParked()))
    .catch(() => false);
  if (isShown) return;
  ctx.state.isReadPending = true;
  ctx.set(settings.headers.readPending, 'true');
};

const send = (
  ctx: ApiContext,
  route: Route,
  response: RouteResponse,
  { settings }: ApiDependencies,
): void => {
  const { status, body, type, isRepeat } = response;
  const etag = ctx.state.isIncomplete === true ? undefined : response.etag;
  ctx.set('Cache-Control', 'private, no-cache');
  if (isRepeat === true) ctx.set(settings.headers.replayed, 'true');
  if (etag !== undefined) ctx.set('ETag', etagOf(etag));
  const unchanged =
    etag !== undefined && mayBeUnchanged(route) && isUnchanged(headerOf(ctx, 'if-none-match'), etag);
  ctx.status = unchanged ? 304 : status;
  if (body === undefined || unchanged) return;
  ctx.type = type ?? 'json';
  ctx.body = body instanceof Readable || type !== undefined ? body : JSON.stringify(body);
  // The first event may take a while: let the client know at once that the stream is open.
  if (body instanceof Readable) ctx.flushHeaders();
};

/** Handles a request for this route, once its caller is known. */
export const handle = async (
  ctx: ApiContext,
  route: Route,
  readBody: ReadBody,
  dependencies: ApiDependencies,
): Promise<void> => {
  ctx.state.route = route.path;
  ctx.state.operation = route.operationId;
  const { presented, identity } = authenticated(ctx.state);
  if (route.permission !== undefined)
    await requirePermission(route.permission, identity.application, presented, dependencies.stores);
  if (route.body !== undefined) await readBody(ctx, route.body.isOptional);
  const reader = route.isQuery === true ? await lookAtReadModels(ctx, dependencies) : NO_READER;
  const response = await route.handle(requestOf(ctx, route, reader, dependencies), dependencies.stores);
  if (response.position !== undefined) await awaitShown(ctx, response.position, dependencies);
  mustStillBeThere(ctx);
  send(ctx, route, response, dependencies);
};
