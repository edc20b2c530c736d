import { Readable } from 'node:stream';
import type { KeyUseRecord } from '../access/key-use-record';
import { isoNow, monotonicMs } from '../async/clock';
import { holds, keyRefused, mustHold } from '../domain/authority';
import type { Client, ServiceRight } from '../domain/events';
import { isRefusal } from '../domain/refusal';
import type { ServiceIdentity } from '../domain/services';
import { masked } from '../domain/texts';
import type { Position } from '../event-log/event-log';
import { codeOf, fault } from '../fault';
import { digestOf, tenantOfKey, type Identity, type PresentedKey } from '../ledger/api-key';
import { TIMES } from '../times';
import type { ApiContext, ApiDependencies, ApiMiddleware, ApiSettings } from './context';
import { queryReader, type Parameters } from './query-parameters';
import {
  conditionOf,
  headerOf,
  idempotencyOf,
  isUnchanged,
  readJsonBody,
  readLinesBody,
  sentIdempotency,
} from './request';
import {
  changesSomething,
  mayBeUnchanged,
  statusOf,
  type NamedRoute,
  type Route,
  type RouteRequest,
  type RouteResponse,
  type ServiceRequest,
} from './route';
import { identifyService, MAX_UNDER_WAY, placesOf, serviceOnly, tenantOnly } from './service-key';

/** What happens to a request once its route is found, in the order in which it is read here. */

// 1. The key

const presentedKeyOf = async (ctx: ApiContext, isWrite: boolean, dependencies: ApiDependencies) => {
  const { settings } = dependencies;
  const { at, deadline } = ctx.state;
  const key = headerOf(ctx, settings.headers.apiKey);
  if (key === undefined) throw keyRefused('missing');
  const tenantId = tenantOfKey(key);
  if (tenantId === undefined) {
    if ((await identifyService(ctx, dependencies, true)) !== undefined) throw tenantOnly();
    throw keyRefused('malformed');
  }
  const request = isWrite ? sentIdempotency(ctx, settings.headers) : undefined;
  return { tenantId, digest: digestOf(key), at, deadline, isWrite, request };
};

/** A key may start a write however long ago it was valid: `execute` checks it at the revision of the append. */
const identify = async (ctx: ApiContext, isWrite: boolean, dependencies: ApiDependencies) => {
  const presented = await presentedKeyOf(ctx, isWrite, dependencies);
  ctx.state.presented = presented;
  const identity = await dependencies.ledger.identify(presented, isWrite ? Infinity : TIMES.keyAgeMs);
  ctx.state.identity = identity;
  return { presented, identity };
};

// 2. The permission

/** Before a refusal, the key is checked as of now: the permission may just have been granted. */
export const requirePermission = async (
  permission: string,
  application: Identity['application'],
  presented: PresentedKey,
  { ledger }: ApiDependencies,
): Promise<void> => {
  if (holds(application, permission)) return;
  mustHold((await ledger.identify(presented, 0)).application, permission);
};

// 3. The body is read, and the handler runs. What it reads is judged each time.

/** A set may be removed a minute after it was left. */
const mustStillBeThere = (lookedMs: number): void => {
  if (monotonicMs() - lookedMs <= TIMES.readWithinMs) return;
  throw fault('read_models_unavailable', 'The request took too long: what it has read may be incomplete.');
};

type Read = RouteRequest['read'];

/** If the tenant is parked, the response only includes what was recorded before, and a header says so. */
const readerOf =
  (ctx: ApiContext, tenantId: string, { readModels, settings }: ApiDependencies): Read =>
  async (query) => {
    const beganMs = monotonicMs();
    const { value, parked } = await readModels.query(tenantId, query);
    mustStillBeThere(beganMs);
    if (parked === undefined) return value;
    const { completeUntil = parked.recorded_at } = ctx.state;
    const earliest = completeUntil < parked.recorded_at ? completeUntil : parked.recorded_at;
    ctx.state.completeUntil = earliest;
    ctx.set(settings.headers.completeUntil, earliest);
    return value;
  };

const MAX_USER_AGENT_LENGTH = 256;

/** The address as the limits count it. The user agent is masked: a key may have been sent in it. */
const clientOf = (ctx: ApiContext): Client => {
  const userAgent = headerOf(ctx, 'user-agent');
  const address = ctx.state.clientAddress;
  if (userAgent === undefined) return { address };
  // Part of a text would keep all of it in memory.
  const short = Buffer.from(userAgent.slice(0, MAX_USER_AGENT_LENGTH)).toString();
  return { address, userAgent: masked(short) };
};

const goneOf = ({ res }: ApiContext): AbortSignal => {
  const gone = new AbortController();
  if (res.destroyed) gone.abort();
  else res.once('close', () => gone.abort());
  return gone.signal;
};

export const keyOf = ({ tenantId, keyId, application }: Identity) => ({
  tenantId,
  keyId,
  applicationId: application.id,
  applicationName: application.name,
});

const writeOf = (ctx: ApiContext, route: Route, { headers, recordsClients }: ApiSettings) => ({
  client: recordsClients ? clientOf(ctx) : undefined,
  idempotency: idempotencyOf(ctx, headers),
  isMet: route.isUnconditional === true ? undefined : conditionOf(ctx),
});

/** Reads and checks what the requests of Applications and of services have in common. */
const checking = ({ lines, body, query = {} }: Route) => {
  const queryIn = queryReader(query);
  return async (ctx: ApiContext) => {
    if (lines !== undefined) await readLinesBody(ctx);
    else if (body !== undefined) await readJsonBody(ctx, body.isOptional);
    const { at, deadline } = ctx.state;
    return {
      at,
      deadline,
      query: queryIn(ctx.querystring),
      body: body?.(ctx.request.body),
      header: (name: string) => headerOf(ctx, name),
    };
  };
};

/** A request of an Application. One literal: a spread with so many members behind it takes a tenth of a request. */
const ofApplication = (
  ctx: ApiContext,
  route: Route,
  { at, deadline, query, body, header }: Awaited<ReturnType<ReturnType<typeof checking>>>,
  identity: Identity,
  digest: string,
  dependencies: ApiDependencies,
) => {
  const { settings, keyUses } = dependencies;
  const { tenantId, keyId, application } = identity;
  return {
    tenantId,
    application,
    keyId,
    caller: { kind: 'key', digest, applicationId: application.id } as const,
    at,
    deadline,
    traceId: ctx.state.traceId,
    permission: route.permission,
    query,
    body,
    header,
    ...(changesSomething(route) ? writeOf(ctx, route, settings) : {}),
    params: ctx['params'] as RouteRequest['params'],
    read: readerOf(ctx, tenantId, dependencies),
    accepts: (...types: readonly string[]) => {
      ctx.vary('Accept');
      return ctx.accepts(...types);
    },
    gaveOut: (eventsGivenOut: number) =>
      keyUses.count(keyOf(identity), isoNow(), { eventsGivenOut }, clientOf(ctx)),
    gone: () => goneOf(ctx),
  };
};

// 4. A write is answered once it is shown

/**
 * Whoever appends projects, so a write usually is shown already. If it is not by the deadline, it is durable
 * nonetheless, and a header says so.
 */
const awaitShown = async (
  ctx: ApiContext,
  toShow: Iterable<readonly [string, Position]>,
  { readModels, settings }: ApiDependencies,
): Promise<void> => {
  const remainingMs = Math.max(0, ctx.state.deadline - TIMES.answerMs - monotonicMs());
  const shown = Array.from(toShow, (upTo) => readModels.show(...upTo, remainingMs));
  if ((await Promise.all(shown)).every(Boolean)) return;
  ctx.state.isReadPending = true;
  ctx.set(settings.headers.readPending, 'true');
};

// 5. The response

const sending = (route: Route, { headers }: ApiSettings) => {
  const status = statusOf(route.response);
  const caching = 'showsKey' in route.response ? 'no-store' : 'private, no-cache';
  return (ctx: ApiContext, response: RouteResponse): void => {
    const { body, type, etag, isRepeat } = response;
    ctx.set({ 'Cache-Control': caching, ...response.headers });
    if (isRepeat === true) ctx.set(headers.replayed, 'true');
    if (etag !== undefined) ctx.etag = etag;
    const { 'if-none-match': ifNoneMatch } = ctx.req.headers;
    const unchanged = ifNoneMatch !== undefined && mayBeUnchanged(route) && isUnchanged(ifNoneMatch, etag);
    if ('headers' in route.response) ctx.body = null;
    ctx.status = unchanged ? 304 : (response.status ?? status);
    if (body === undefined || unchanged) return;
    ctx.type = type ?? 'json';
    ctx.body = type === undefined ? JSON.stringify(body) : body;
    // The first event may take a while: let the client know at once that the stream is open.
    if (body instanceof Readable) ctx.flushHeaders();
  };
};

type Responding = (ctx: ApiContext) => Promise<RouteResponse>;

const toApplication = (route: Route, dependencies: ApiDependencies): Responding => {
  const { permission, handle } = route;
  const check = checking(route);
  return async (ctx) => {
    const { presented, identity } = await identify(ctx, changesSomething(route), dependencies);
    const { tenantId, application } = identity;
    if (permission !== undefined) await requirePermission(permission, application, presented, dependencies);
    const common = await check(ctx);
    const request = ofApplication(ctx, route, common, identity, presented.digest, dependencies);
    const response = await handle(request, dependencies);
    const { position, isShown } = response;
    if (position !== undefined && isShown !== true)
      await awaitShown(ctx, [[tenantId, position]], dependencies);
    return ctx.state.completeUntil === undefined ? response : { ...response, etag: undefined };
  };
};

/** The same for a service. An idempotency key is ignored. */
const toService = (route: Route, right: ServiceRight, dependencies: ApiDependencies): Responding => {
  const { handle } = route as unknown as Route<unknown, Parameters, ServiceRequest>;
  const check = checking(route);
  const inPlace = placesOf(route.lines === undefined ? Infinity : MAX_UNDER_WAY);

  const answer = async (ctx: ApiContext, service: ServiceIdentity): Promise<RouteResponse> => {
    const response = await handle({ service, ...(await check(ctx)) }, dependencies);
    if (response.toShow !== undefined) await awaitShown(ctx, response.toShow, dependencies);
    return response;
  };

  return async (ctx) => {
    const service = await identifyService(ctx, dependencies, !changesSomething(route));
    if (service === undefined) await identify(ctx, false, dependencies);
    if (service === undefined || !service.may.includes(right)) throw serviceOnly(right);
    return inPlace(service.id, () => answer(ctx, service));
  };
};

/** Records a refusal for the key that got it, if that is known. False: the error is none. */
export const countRefusal = (ctx: ApiContext, keyUses: KeyUseRecord, error: unknown): boolean => {
  const access = isRefusal(error) ? error.access : undefined;
  // The key became invalid while the request was handled, and is not known any more.
  if (access === undefined) return codeOf(error) === 'key_refused';
  const { presented, identity, at } = ctx.state;
  const key = 'key' in access ? access.key : identity && keyOf(identity);
  if (presented !== undefined && key !== undefined)
    keyUses.count({ ...key, tenantId: presented.tenantId }, at, access, clientOf(ctx));
  return true;
};

/** Whatever came of the request, the key was used for it. */
const countUse = (
  ctx: ApiContext,
  { operationId: operation }: NamedRoute,
  keyUses: KeyUseRecord,
  response?: RouteResponse,
): void => {
  const { identity, at } = ctx.state;
  const beginsStream = response?.body instanceof Readable && ctx.method !== 'HEAD';
  if (identity !== undefined) keyUses.count(keyOf(identity), at, { operation, beginsStream }, clientOf(ctx));
};

export const runRoute = (route: NamedRoute, dependencies: ApiDependencies): ApiMiddleware => {
  const { keyUses } = dependencies;
  const send = sending(route, dependencies.settings);
  const { service } = route;
  const answer =
    service === undefined ? toApplication(route, dependencies) : toService(route, service, dependencies);
  return async (ctx) => {
    ctx.state.route = route.path;
    try {
      const response = await answer(ctx);
      send(ctx, response);
      countUse(ctx, route, keyUses, response);
    } catch (error) {
      if (!countRefusal(ctx, keyUses, error)) countUse(ctx, route, keyUses);
      throw error;
    }
  };
};
