import { randomUUID } from 'node:crypto';
import { isoNow, monotonicMs } from '../../clock';
import { isTraceId } from '../../domain/trace-id';
import { fault } from '../../fault';
import { securityHeaders } from '../answer/security-headers';
import { headerOf, type ApiContext, type ApiParts } from '../api-context';
import { childOf, readTraceParent, traceParentText } from './trace-parent';

/** A response is promised within 2 s of the request's arrival; the remainder is for the network. */
const RESPOND_WITHIN_MS = 1_900;

/** Sets the time that the request's event will carry, and the deadline for the response. */
export const stampArrival = (ctx: ApiContext): void => {
  ctx.state.at = isoNow();
  ctx.state.deadline = monotonicMs() + RESPOND_WITHIN_MS;
};

/** Undefined: the target has no path, as in `a://b`, or is not a URL. The HTTP parser accepts both. */
const pathOf = (ctx: ApiContext): string | undefined => {
  try {
    const { path } = ctx;
    // `//` is not a path with a trailing slash.
    return path.length > 2 && path.endsWith('/') ? path.slice(0, -1) : path;
  } catch {
    return undefined;
  }
};

/** Unless the request already has a span. */
const continueTrace = (ctx: ApiContext): void => {
  const parent =
    ctx.state.traceContext === undefined ? readTraceParent(headerOf(ctx, 'traceparent')) : undefined;
  if (parent === undefined) return;
  ctx.state.traceContext = childOf(parent);
  ctx.set('traceparent', traceParentText(ctx.state.traceContext));
};

/** The first step: sets the arrival time, the trace id and the headers that every response has. */
export const arrive = (ctx: ApiContext, { headers, isOpen }: ApiParts): void => {
  const { state } = ctx;
  const sent = headerOf(ctx, headers.traceId);
  continueTrace(ctx);
  state.traceId =
    sent !== undefined && isTraceId(sent) ? sent : (state.traceContext?.traceId ?? randomUUID());
  state.arrivedMs = monotonicMs();
  stampArrival(ctx);
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

/** From the raw headers: Node keeps only the first of several. */
const hostCount = ({ req: { rawHeaders } }: ApiContext): number =>
  rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;

/** Node's own response to a missing Host header has no body, so check here. Two of them hint at request smuggling. */
export const requireTarget = (ctx: ApiContext): void => {
  if (ctx.state.pathless === true) throw fault('malformed_request', 'The target of the request has no path.');
  const hosts = hostCount(ctx);
  if (hosts > 1 || (ctx.req.httpVersion === '1.1' && hosts === 0))
    throw fault('malformed_request', 'An HTTP/1.1 request needs one Host header.');
};
