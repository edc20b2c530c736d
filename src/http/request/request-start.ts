import { randomUUID } from 'node:crypto';
import { isoNow, monotonicMs } from '../../async/clock';
import { isTraceId } from '../../domain/trace-id';
import { fault } from '../../fault';
import { securityHeaders } from '../response/security-headers';
import { headerOf, type ApiContext, type Step } from '../context';
import type { ApiDependencies } from '../dependencies';
import { arrivalOf } from './pipelining';

/** A response is promised within 2 s of the request's arrival; the remainder is for the network. */
const RESPOND_WITHIN_MS = 1_900;

/** Sets the time that the request's event will carry, and the deadline for the response. */
export const setRequestTime = (ctx: ApiContext, arrivedMs = monotonicMs()): void => {
  ctx.state.at = isoNow();
  ctx.state.deadline = arrivedMs + RESPOND_WITHIN_MS;
};

/** The path and query of an absolute URL. Undefined: it has no path, as in `a://b`, or is not a URL. */
const targetOfUrl = (url: string): string | undefined => {
  if (!URL.canParse(url)) return undefined;
  const { pathname, search } = new URL(url);
  return pathname.startsWith('/') ? `${pathname}${search}` : undefined;
};

/**
 * The target of the request as a path with its query, or `*`. Koa passes anything else, and a fragment, to Node's
 * `url.parse`, which prints some invalid URLs to stderr: they may contain a key.
 */
const targetOf = (sent: string): string | undefined => {
  if (sent === '*') return sent;
  return sent.startsWith('/') ? sent.replace(/#.*$/, '') : targetOfUrl(sent);
};

/** Without a trailing slash; `//` has none. */
export const pathOf = ({ path }: ApiContext): string =>
  path.length > 2 && path.endsWith('/') ? path.slice(0, -1) : path;

/** The header of W3C Trace Context. Later versions may append fields. */
const TRACE_PARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

const traceIdOf = (ctx: ApiContext, header: string): string => {
  const sent = headerOf(ctx, header);
  if (sent !== undefined && isTraceId(sent)) return sent;
  return TRACE_PARENT.exec(headerOf(ctx, 'traceparent') ?? '')?.[1] ?? randomUUID();
};

/** Sets the times, the trace id and the headers that every response has. */
export const startRequest =
  ({ settings: { headers }, stores: { events } }: ApiDependencies): Step =>
  (ctx, next) => {
    const { state } = ctx;
    state.traceId = traceIdOf(ctx, headers.traceId);
    state.arrivedMs = arrivalOf(ctx.req);
    setRequestTime(ctx, state.arrivedMs);
    const target = targetOf(ctx.req.url ?? '');
    if (target === undefined) state.pathless = true;
    ctx.req.url = target ?? '/';
    state.path = pathOf(ctx);
    ctx.set(securityHeaders);
    ctx.set(headers.traceId, state.traceId);
    // The process is stopping, so the connection is not kept alive.
    if (events.stopping.aborted) ctx.set('Connection', 'close');
    return next();
  };

/** From the raw headers: Node keeps only the first of several. */
const hostCount = ({ req: { rawHeaders } }: ApiContext): number =>
  rawHeaders.filter((name, at) => at % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host').length;

/** Node's own response to a missing Host header has no body, so check here. Two of them hint at request smuggling. */
export const requireTarget: Step = (ctx, next) => {
  if (ctx.state.pathless === true) throw fault('malformed_request', 'The target of the request has no path.');
  const hosts = hostCount(ctx);
  if (hosts > 1 || (ctx.req.httpVersion === '1.1' && hosts === 0))
    throw fault('malformed_request', 'An HTTP/1.1 request needs one Host header.');
  return next();
};
