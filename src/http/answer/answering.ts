import { Readable } from 'node:stream';
import { monotonicMs } from '../../clock';
import type { Client } from '../../domain/events';
import { masked } from '../../domain/key-like';
import type { Position } from '../../event-log/event-log';
import { fault } from '../../fault';
import { ANSWER_MS } from '../../ledger/ledger';
import { findParked } from '../../projecting/parking';
import { authenticated, headerOf, type ApiContext, type ApiParts } from '../api-context';
import { etagOf, ifMatch, isUnchanged } from '../request/conditions';
import { idempotencyOf } from '../request/idempotency';
import { rawBodyOf } from '../request/request-body';
import { queryCheck } from '../request/validation';
import { mayBeUnchanged, takesCondition, type Answer, type Asked, type Route } from '../routes/route';

const MAX_USER_AGENT_LENGTH = 256;

/** The address as the limits count it. A key may have been sent as the user agent. */
const clientOf = (ctx: ApiContext, { recordsClients }: ApiParts): Client | undefined => {
  if (!recordsClients) return undefined;
  const userAgent = headerOf(ctx, 'user-agent');
  const address = ctx.state.clientAddress;
  return userAgent === undefined
    ? { address }
    : { address, userAgent: masked(userAgent.slice(0, MAX_USER_AGENT_LENGTH)) };
};

const noParameters = queryCheck({});

const askedOf = (ctx: ApiContext, route: Route, parts: ApiParts): Asked<unknown> => {
  const { headers } = parts;
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
    params: ctx['params'] as Asked<unknown>['params'],
    query: (route.query ?? noParameters)(ctx.querystring),
    header: (name) => headerOf(ctx, name),
    body: route.body === undefined ? undefined : route.body(ctx.request.body),
    idempotency,
    isMet,
    at,
    traceId,
    client: writes ? clientOf(ctx, parts) : undefined,
    deadline,
  };
};

/**
 * A write is answered when the read models show it. If they do not by the time that an answer is due, it is durable all
 * the same, and says so; while the service starts no read is answered, so nothing is waited for.
 */
const showWrite = async (ctx: ApiContext, position: Position, parts: ApiParts): Promise<void> => {
  const { tenantId } = authenticated(ctx.state).identity;
  const left = parts.isReady() ? Math.max(0, ctx.state.deadline - ANSWER_MS - monotonicMs()) : 0;
  const shown = await parts
    .reached(position, left)
    .then(async (reached) => reached && !(await parts.isParked(tenantId, position)))
    .catch(() => false);
  if (shown) return;
  ctx.state.isReadPending = true;
  ctx.set(parts.headers.readPending, 'true');
};

/** What waits behind a bad event is not in the answer: everything recorded before that event is. */
const showGap = async (ctx: ApiContext, projection: string, { reader, headers }: ApiParts): Promise<void> => {
  const parked = await findParked(reader(projection), authenticated(ctx.state).identity.tenantId);
  if (parked !== undefined) ctx.set(headers.completeUntil, parked.recorded_at);
};

const send = (ctx: ApiContext, route: Route, answered: Answer, { headers }: ApiParts): void => {
  const { status, body, type, etag, totalItems } = answered;
  ctx.set('Cache-Control', 'private, no-cache');
  if (etag !== undefined) ctx.set('ETag', etagOf(etag));
  if (totalItems !== undefined) ctx.set(headers.totalItems, String(totalItems));
  const isKnown =
    etag !== undefined && mayBeUnchanged(route) && isUnchanged(headerOf(ctx, 'if-none-match'), etag);
  ctx.status = isKnown ? 304 : status;
  if (body === undefined || isKnown) return;
  ctx.type = type ?? 'json';
  ctx.body = body instanceof Readable ? body : JSON.stringify(body);
  // Nothing may come for a while: whoever follows must know at once that the stream is open.
  if (body instanceof Readable) ctx.flushHeaders();
};

/** The innermost step: asks the handler and sends its answer. */
export const answer = async (ctx: ApiContext, route: Route, parts: ApiParts): Promise<void> => {
  if (route.from !== undefined && ctx.state.mayBeStale === true)
    throw fault(
      'read_models_unavailable',
      'It could not be determined in time whether the read models had been switched.',
    );
  // First: a tenant that is released in between shows more than the header says, not less.
  if (route.from !== undefined) await showGap(ctx, route.from, parts);
  const answered = await route.handle(askedOf(ctx, route, parts), parts);
  if (answered.position !== undefined) await showWrite(ctx, answered.position, parts);
  send(ctx, route, answered, parts);
};
