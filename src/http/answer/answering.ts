import { monotonicMs } from '../../clock';
import { isUnchanged, etagOf, ifMatch } from '../request/conditions';
import { headerOf, type ApiContext, type ApiParts, type Step } from '../api-context';
import { idempotencyOf } from '../request/idempotency';
import { findParked } from '../../projecting/parking';
import { sendAtOnce, setField } from './fields';
import { givenIn } from '../request/parameters';
import { queryOf } from '../request/query';
import type { Position } from '../../event-log/event-log';
import { rememberedBy } from './remembered-by';
import { rawBodyOf } from '../request/request-body';
import type { Reader } from '../../../projections/projector';
import type { Answer, Asked, Route } from '../routes/route';

const askedOf = (ctx: ApiContext, route: Route, { headers }: ApiParts): Asked<unknown> => {
  const { key, at, traceId, deadline } = ctx.state;
  if (key === undefined) throw new Error('A route was reached without a key.');
  const { tenantId, digest, application } = key;
  const writes = route.method !== 'get';
  const idempotency = writes ? idempotencyOf(ctx, headers, rawBodyOf(ctx)) : undefined;
  const precondition = writes ? ifMatch(headerOf(ctx, 'if-match')) : undefined;
  return {
    tenantId,
    application,
    caller: { kind: 'key', digest, applicationId: application.id, at },
    permission: route.permission,
    query: givenIn(route.parameters ?? {}, queryOf(ctx.querystring)),
    body: route.body === undefined ? undefined : route.body(ctx.request.body),
    idempotency,
    precondition,
    at,
    traceId,
    deadline,
  };
};

/** So much of the time is kept back for the answer itself. */
const ANSWER_MS = 50;

/**
 * A write is answered when the read models show it. If they do not by the time that an answer is due, it is durable all
 * the same, and says so; while the service starts no read is answered, so nothing is waited for.
 */
const showWrite = async (ctx: ApiContext, position: Position, parts: ApiParts): Promise<void> => {
  const left = parts.isReady() ? Math.max(0, ctx.state.deadline - ANSWER_MS - monotonicMs()) : 0;
  const shown = await parts
    .reached(position, left)
    .then(async (reached) => reached && !(await parts.isParked(ctx.state.key?.tenantId ?? '')))
    .catch(() => false);
  if (!shown) ctx.set(parts.headers.readPending, 'true');
};

/** What waits behind a bad event is not in the answer: everything recorded before that event is. */
interface Gap {
  readonly completeUntil?: string;
}

const gaps = rememberedBy<Gap>();

const findGap = async (reader: Reader, tenantId: string): Promise<Gap> => {
  const parked = await findParked(reader, tenantId);
  const gap = parked === undefined ? {} : { completeUntil: parked.recorded_at };
  gaps(reader).set(tenantId, gap);
  return gap;
};

const tellGap = (ctx: ApiContext, reader: Reader, { headers }: ApiParts): Promise<void> | undefined => {
  const { tenantId = '' } = ctx.state;
  const tell = ({ completeUntil }: Gap): undefined => {
    if (completeUntil !== undefined) setField(ctx, headers.completeUntil, completeUntil);
  };
  const known = gaps(reader).get(tenantId);
  return known === undefined ? findGap(reader, tenantId).then(tell) : tell(known);
};

const JSON_TYPE = 'application/json; charset=utf-8';

const send = (ctx: ApiContext, route: Route, answer: Answer, { headers }: ApiParts): void => {
  setField(ctx, 'Cache-Control', 'private, no-cache');
  if (answer.etag !== undefined) setField(ctx, 'ETag', etagOf(answer.etag));
  if (answer.totalItems !== undefined) setField(ctx, headers.totalItems, String(answer.totalItems));
  const isKnown =
    answer.etag !== undefined &&
    route.method === 'get' &&
    isUnchanged(headerOf(ctx, 'if-none-match'), answer.etag);
  const text = answer.text ?? (answer.body === undefined ? undefined : JSON.stringify(answer.body));
  if (text !== undefined && !isKnown && sendAtOnce(ctx, answer.status, JSON_TYPE, text)) return;
  ctx.status = isKnown ? 304 : answer.status;
  if (text === undefined || isKnown) return;
  // Before the body: else Koa would look for a type by itself.
  ctx.res.setHeader('Content-Type', JSON_TYPE);
  ctx.body = text;
};

/** The innermost step: asks the handler and sends its answer. */
export const answering =
  (route: Route, parts: ApiParts): Step =>
  async (ctx) => {
    // First: a tenant that is freed meanwhile gives more than was said, not less.
    const told = route.from === undefined ? undefined : tellGap(ctx, parts.reader(route.from), parts);
    if (told !== undefined) await told;
    const handled = route.handle(askedOf(ctx, route, parts), parts);
    const answer = handled instanceof Promise ? await handled : handled;
    if (answer.position !== undefined) await showWrite(ctx, answer.position, parts);
    send(ctx, route, answer, parts);
  };
