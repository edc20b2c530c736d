import { randomUUID } from 'node:crypto';
import { isoNow, monotonicMs } from '../../clock';
import { isTraceId } from '../../domain/trace-id';
import { fault } from '../../fault';
import { securityHeaders } from '../answer/security-headers';
import { headerOf, type ApiContext, type ApiParts } from '../api-context';
import { childOf, readTraceParent, traceParentText } from './trace-parent';

/** An answer is promised within 2 s of the request's arrival; the rest is for the way there and back. */
const ANSWER_WITHIN_MS = 1_900;

/** The request is here now: the time that its event will bear, and until when it is to be answered. */
export const arrived = (ctx: ApiContext): void => {
  ctx.state.at = isoNow();
  ctx.state.deadline = monotonicMs() + ANSWER_WITHIN_MS;
};

/** The HTTP parser lets targets through that have no path, as `a://b`, or that are no URL at all. */
const pathOf = (ctx: ApiContext): string | undefined => {
  try {
    const { path } = ctx;
    // `//` is no path with a slash too many at its end.
    return path.length > 2 && path.endsWith('/') ? path.slice(0, -1) : path;
  } catch {
    return undefined;
  }
};

/** Unless its span has a place in the trace already. */
const continueTrace = (ctx: ApiContext): void => {
  const parent = ctx.state.place === undefined ? readTraceParent(headerOf(ctx, 'traceparent')) : undefined;
  if (parent === undefined) return;
  ctx.state.place = childOf(parent);
  ctx.set('traceparent', traceParentText(ctx.state.place));
};

/** First of all: when the request came, its trace id, and the headers that every answer has. */
export const arrive = (ctx: ApiContext, { headers, isOpen }: ApiParts): void => {
  const { state } = ctx;
  const sent = headerOf(ctx, headers.traceId);
  continueTrace(ctx);
  state.traceId = sent !== undefined && isTraceId(sent) ? sent : (state.place?.traceId ?? randomUUID());
  state.arrivedMs = monotonicMs();
  arrived(ctx);
  const path = pathOf(ctx);
  if (path === undefined) {
    ctx.req.url = '/';
    state.pathless = true;
  }
  state.path = path ?? '/';
  ctx.set(securityHeaders);
  ctx.set(headers.traceId, state.traceId);
  if (!isOpen()) ctx.set('Connection', 'close');
};

/** Node keeps the first of several. */
const hostCount = ({ req: { rawHeaders } }: ApiContext): number =>
  rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;

/** Node's own answer to a missing Host header has no body, so the check is ours. Two of them are an attempt to confuse. */
export const requireTarget = (ctx: ApiContext): void => {
  if (ctx.state.pathless === true) throw fault('malformed_request', 'The target of the request has no path.');
  const hosts = hostCount(ctx);
  if (hosts > 1 || (ctx.req.httpVersion === '1.1' && hosts === 0))
    throw fault('malformed_request', 'An HTTP/1.1 request needs one Host header.');
};
