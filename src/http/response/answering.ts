import { Readable } from 'node:stream';
import { isoNow, monotonicMs } from '../../async/clock';
import type { Client } from '../../domain/events';
import { masked } from '../../domain/key-like';
import type { Position } from '../../event-log/event-log';
import { fault } from '../../fault';
import { ANSWER_MS } from '../../ledger/ledger';
import { findParked } from '../../projecting/parked-tenants';
import { authenticated, headerOf, type ApiContext, type ApiDependencies } from '../api-context';
import { etagOf, ifMatch, unchangedTag } from '../request/conditions';
import { idempotencyOf } from '../request/idempotency';
import { countUse } from '../request/key-use';
import { rawBodyOf } from '../request/request-body';
import { queryCheck } from '../request/validation';
import {
  mayBeUnchanged,
  takesCondition,
  type Route,
  type RouteRequest,
  type RouteResponse,
} from '../routes/route';

const MAX_USER_AGENT_LENGTH = 256;

/** The address as the limits count it. The user agent is masked: a key may have been sent in it. */
const clientOf = (ctx: ApiContext, { recordsClients }: ApiDependencies): Client | undefined => {
  if (!recordsClients) return undefined;
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

const routeRequestOf = (
  ctx: ApiContext,
  route: Route,
  dependencies: ApiDependencies,
): RouteRequest<unknown> => {
  const { headers } = dependencies;
  const { at, traceId, deadline } = ctx.state;
  const { presented, identity } = authenticated(ctx.state);
  const { tenantId, application } = identity;
  const writes = route.method !== 'get';
  const idempotency = writes ? idempotencyOf(ctx, headers, rawBodyOf(ctx)) : undefined;
  const isMet = takesCondition(route) ? ifMatch(headerOf(ctx, 'if-match')) : undefined;
  return {
    tenantId,
    application,
    caller: { kind: 'key', digest: presented.digest, applicationId: application.id, at },
    permission: route.permission,
    params: ctx['params'] as RouteRequest<unknown>['params'],
    query: (route.query ?? noParameters)(ctx.querystring),
    header: (name) => headerOf(ctx, name),
    accepts: (...types) => {
      ctx.vary('Accept');
      return ctx.accepts(...types);
    },
    body: route.body === undefined ? undefined : route.body(ctx.request.body),
    idempotency,
    isMet,
    at,
    traceId,
    client: writes ? clientOf(ctx, dependencies) : undefined,
    gaveOut: (eventsGivenOut) => countUse(ctx.state, isoNow(), { eventsGivenOut }, dependencies),
    deadline,
    gone: () => goneOf(ctx),
  };
};

/**
 * Waits until a write is visible in the read models. If it is not by the deadline, it is durable nonetheless, and a
 * header says so. During startup no reads are served, so there is nothing to wait for.
 */
const awaitVisible = async (
  ctx: ApiContext,
  position: Position,
  dependencies: ApiDependencies,
): Promise<void> => {
  const { tenantId } = authenticated(ctx.state).identity;
  const remainingMs = dependencies.isReady()
    ? Math.max(0, ctx.state.deadline - ANSWER_MS - monotonicMs())
    : 0;
  const isVisible = await dependencies
    .reached(position, remainingMs)
    .then(async (reached) => reached && !(await dependencies.isParked(tenantId, position)))
    .catch(() => false);
  if (isVisible) return;
  ctx.state.isReadPending = true;
  ctx.set(dependencies.headers.readPending, 'true');
};

/** If the tenant is parked at a bad event, the response only includes what was recorded before: a header says so. */
const setCompleteUntil = async (
  ctx: ApiContext,
  projection: string,
  { reader, headers }: ApiDependencies,
): Promise<void> => {
  const parked = await findParked(reader(projection), authenticated(ctx.state).identity.tenantId);
  if (parked !== undefined) ctx.set(headers.completeUntil, parked.recorded_at);
};

const send = (ctx: ApiContext, route: Route, response: RouteResponse, { headers }: ApiDependencies): void => {
  const { status, body, type, etag, totalItems } = response;
  ctx.set('Cache-Control', 'private, no-cache');
  if (totalItems !== undefined) ctx.set(headers.totalItems, String(totalItems));
  const unchanged =
    etag !== undefined && mayBeUnchanged(route)
      ? unchangedTag(headerOf(ctx, 'if-none-match'), etag)
      : undefined;
  if (etag !== undefined) ctx.set('ETag', unchanged ?? etagOf(etag));
  ctx.status = unchanged === undefined ? status : 304;
  // As in the response that the client has.
  if (unchanged !== undefined) ctx.vary('Accept-Encoding');
  if (body === undefined || unchanged !== undefined) return;
  ctx.type = type ?? 'json';
  ctx.body = body instanceof Readable ? body : JSON.stringify(body);
  // The first event may take a while: let the client know at once that the stream is open.
  if (body instanceof Readable) ctx.flushHeaders();
};

/** The innermost step: calls the handler and sends its response. */
export const answer = async (ctx: ApiContext, route: Route, dependencies: ApiDependencies): Promise<void> => {
  if (route.projection !== undefined && ctx.state.mayBeStale === true)
    throw fault(
      'read_models_unavailable',
      'It could not be determined in time whether the read models had been switched.',
    );
  // Before the read: if the tenant is released in between, the response has more than the header says, not less.
  if (route.projection !== undefined) await setCompleteUntil(ctx, route.projection, dependencies);
  const response = await route.handle(routeRequestOf(ctx, route, dependencies), dependencies);
  if (response.position !== undefined) await awaitVisible(ctx, response.position, dependencies);
  send(ctx, route, response, dependencies);
};
