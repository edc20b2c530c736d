import { randomUUID } from 'node:crypto';
import { isoNow, monotonicMs } from '../../async/clock';
import { isTraceId } from '../../domain/names';
import type { ApiContext, ApiDependencies, ApiMiddleware } from '../context';
import { TIMES } from '../../times';

/**
 * On every response. Responses are data: browsers must not sniff their type, run, frame or share them.
 * Strict-Transport-Security is up to the proxy that terminates TLS in front of this service.
 */
export const securityHeaders: Readonly<Record<string, string>> = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Sets the time that the request's event will carry, and the deadline for the response. */
export const setRequestTime = ({ state }: ApiContext): void => {
  state.at = isoNow();
  state.deadline = monotonicMs() + TIMES.respondMs;
};

/**
 * The path and query of the target. Koa would hand a target with a host, or with a fragment, to Node's `url.parse`, which
 * throws at some and prints others to stderr: they may contain a key.
 */
const targetOf = (sent: string): string =>
  sent.startsWith('/') && !sent.includes('#')
    ? sent
    : sent.replace(/^[a-z]+:\/\/[^/?#]*\/?/i, '/').replace(/#.*$/, '');

/** Without a trailing slash; `//` has none. */
export const pathOf = ({ path }: ApiContext): string =>
  path.length > 2 && path.endsWith('/') ? path.slice(0, -1) : path;

/** The header of W3C Trace Context. Later versions may append fields. */
const TRACE_PARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/;

const traceIdOf = ({ req: { headers } }: ApiContext, name: string): string => {
  const { [name]: sent, traceparent } = headers;
  if (typeof sent === 'string' && isTraceId(sent)) return sent;
  return (typeof traceparent === 'string' && TRACE_PARENT.exec(traceparent)?.[1]) || randomUUID();
};

/** The messages of access log lines. */
export const REQUEST = 'request';
export const REQUEST_FAILED = 'request failed';

/** The status of the response. Undefined: the client disconnected before there was one. Koa's is 404 until it is set. */
export const sentStatus = ({ res }: ApiContext): number | undefined =>
  res.headersSent ? res.statusCode : undefined;

const levelOf = (ctx: ApiContext): 'info' | 'warn' | 'error' => {
  if (ctx.state.error !== undefined) return 'error';
  return sentStatus(ctx) === 503 ? 'warn' : 'info';
};

/** Never has a key or a body. Members that are undefined are omitted. */
const lineOf = (ctx: ApiContext) => {
  const { traceId, arrivedMs, clientAddress, route, identity, reason, error } = ctx.state;
  return {
    trace_id: traceId,
    method: ctx.method,
    route: route ?? null,
    status: sentStatus(ctx) ?? null,
    ms: monotonicMs() - arrivedMs,
    client_address: clientAddress,
    application_id: identity?.application.id ?? null,
    key_id: identity?.keyId ?? null,
    reason,
    aborted: ctx.res.writableFinished ? undefined : true,
    err: error,
  };
};

/**
 * Sets the times, the trace id and the headers that every response has. Once the response is sent or its connection lost,
 * logs the request and adds it to the metrics.
 */
export const startRequest = (dependencies: ApiDependencies): ApiMiddleware => {
  const { settings, logger, metrics } = dependencies;
  const { stopping } = dependencies.events;
  const endRequest = (ctx: ApiContext): void => {
    metrics.ended(ctx);
    const level = levelOf(ctx);
    if (!logger.isLevelEnabled(level)) return;
    logger[level](lineOf(ctx), level === 'error' ? REQUEST_FAILED : REQUEST);
  };

  const traceIdHeader = settings.headers.traceId;
  const traceIdName = traceIdHeader.toLowerCase();
  return (ctx, next) => {
    const { state, res } = ctx;
    state.traceId = traceIdOf(ctx, traceIdName);
    state.arrivedMs = monotonicMs();
    setRequestTime(ctx);
    ctx.req.url = targetOf(ctx.req.url ?? '');
    state.path = pathOf(ctx);
    for (const name in securityHeaders) res.setHeader(name, securityHeaders[name] as string);
    res.setHeader(traceIdHeader, state.traceId);
    // The process is stopping, so the connection is not kept alive.
    if (stopping.aborted) res.setHeader('Connection', 'close');
    metrics.began();
    if (res.closed) endRequest(ctx);
    else res.on('close', () => endRequest(ctx)); // emitted once
    return next();
  };
};
