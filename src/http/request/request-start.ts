import { randomUUID } from 'node:crypto';
import { isoNow, monotonicMs } from '../../async/clock';
import { isTraceId } from '../../domain/trace-id';
import { securityHeaders } from '../response/security-headers';
import { headerOf, type ApiContext, type Step } from '../context';
import type { ApiDependencies } from '../dependencies';

/** A response is promised within 2 s of the request's arrival; the remainder is for the network. */
const RESPOND_WITHIN_MS = 1_900;

/** Sets the time that the request's event will carry, and the deadline for the response. */
export const setRequestTime = (ctx: ApiContext): void => {
  ctx.state.at = isoNow();
  ctx.state.deadline = monotonicMs() + RESPOND_WITHIN_MS;
};

/**
 * The path and query of the target. Koa would hand a target with a host, or with a fragment, to Node's `url.parse`, which
 * throws at some and prints others to stderr: they may contain a key.
 */
const targetOf = (sent: string): string => sent.replace(/^[a-z]+:\/\/[^/?#]*\/?/i, '/').replace(/#.*$/, '');

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
    state.arrivedMs = monotonicMs();
    setRequestTime(ctx);
    ctx.req.url = targetOf(ctx.req.url ?? '');
    state.path = pathOf(ctx);
    ctx.set(securityHeaders);
    ctx.set(headers.traceId, state.traceId);
    // The process is stopping, so the connection is not kept alive.
    if (events.stopping.aborted) ctx.set('Connection', 'close');
    return next();
  };
