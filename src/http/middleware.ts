import cors from '@koa/cors';
import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { monotonicMs } from '../async/clock';
import { isTraceId, masked } from '../domain/texts';
import { codeOf, fault, isFinal, messageOf, moreOf, type Fault } from '../fault';
import { countedAddress } from '../limits/client-address';
import type { LimitExceeded } from '../limits/rate-limits';
import { httpProblems, isHttpProblemCode, type HttpProblemCode } from '../problems';
import type { ApiContext, ApiDependencies, ApiMiddleware, ApiSettings } from './context';
import { etagOf, setRequestTime } from './request';
import { isKnownService } from './service-key';

/** The middleware, which `api.ts` lists in order. */

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
  const { traceId, arrivedMs, clientAddress, route, identity, service, reason, error } = ctx.state;
  return {
    trace_id: traceId,
    method: ctx.method,
    route: route ?? null,
    status: sentStatus(ctx) ?? null,
    ms: monotonicMs() - arrivedMs,
    client_address: clientAddress,
    application_id: identity?.application.id ?? null,
    service_id: service?.id,
    key_id: identity?.keyId ?? service?.keyId ?? null,
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

/** The response headers that a page of another origin may read, besides the safelisted ones. */
const EXPOSED = 'ETag, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, Allow';

const ALLOWED =
  'Idempotency-Key, Content-Type, If-Match, If-None-Match, Last-Event-ID, traceparent, tracestate';

/** How long a browser may cache a preflight response. */
const MAX_AGE_SECONDS = 600;

/**
 * Lets the calling page read the response if its origin is allowed. Keys are sent in a header, so there are no
 * credentials to allow. A preflight is answered here, but counts in the rate limits like any other request.
 */
export const crossOrigin = (
  { corsOrigins, headers }: ApiSettings,
  countPreflight: ApiMiddleware,
): ApiMiddleware => {
  const { apiKey, traceId, idempotencyKey, verifyKey, readPending, replayed, completeUntil } = headers;
  const verified = [headers.tenantId, headers.applicationId, headers.keyId];
  const allow = cors({
    origin: (ctx) => {
      const origin = ctx.get('Origin');
      if (corsOrigins.includes('*')) return origin && '*';
      return corsOrigins.includes(origin) ? origin : '';
    },
    allowMethods: 'GET, HEAD, POST, PUT, DELETE',
    exposeHeaders: [traceId, readPending, replayed, completeUntil, ...verified, EXPOSED].join(', '),
    allowHeaders: [apiKey, traceId, idempotencyKey, verifyKey, ALLOWED].join(', '),
    maxAge: MAX_AGE_SECONDS,
  });
  return async (ctx, next) => {
    let isPreflight = true;
    await allow(ctx, async () => void (isPreflight = false));
    await (isPreflight ? countPreflight(ctx, async () => undefined) : next());
  };
};

export const PROBLEM_TYPE = 'application/problem+json';

/** What is the same in the body of every error with this code (RFC 9457). */
export const problemOf = (code: HttpProblemCode, publicUrl: string) => {
  const { status, title, meaning } = httpProblems[code];
  return { type: `${publicUrl}/problems/${code}`, title, status, detail: meaning, code };
};

/** These do not resolve by themselves, only through an operator or another request. */
const PERMANENT = /^(?:tenant_unreadable|services_unreadable|application_type_fixed|quota_exceeded)$/;

const headersOf = (code: HttpProblemCode, error: unknown): Record<string, string> => {
  const { status } = httpProblems[code];
  const { tag, allow, retryAfter } = moreOf(error);
  const isTransient = (status === 503 || status === 409) && !PERMANENT.test(code) && !isFinal(error);
  return {
    'Cache-Control': 'no-store',
    ...(status === 401 ? { 'WWW-Authenticate': 'ApiKey realm="tenant-ledger"' } : {}),
    ...(isTransient ? { 'Retry-After': '1' } : {}),
    ...(typeof retryAfter === 'number' ? { 'Retry-After': String(retryAfter) } : {}),
    ...(typeof tag === 'string' ? { ETag: etagOf(tag) } : {}),
    ...(typeof allow === 'string' ? { Allow: allow } : {}),
  };
};

/** The members that only this problem has, without internal ones like `reason` and `tag`. */
const ownMembers = (code: HttpProblemCode, error: unknown): Readonly<Record<string, unknown>> => {
  const { members } = httpProblems[code];
  return Object.fromEntries(members.map((name) => [name, moreOf(error)[name]]));
};

const noteProblem = ({ state }: ApiContext, code: HttpProblemCode, error: unknown): void => {
  const { reason } = moreOf(error);
  state.problem = code;
  if (typeof reason === 'string') state.reason = reason;
  else if (httpProblems[code].status === 503) state.reason = messageOf(error);
  if (code === 'internal_error') state.error = error;
};

/** The messages of server errors may reveal internals; all others were written for the caller. */
const detailOf = (
  code: HttpProblemCode,
  error: unknown,
  ctx: ApiContext,
  { headers }: ApiSettings,
): object => {
  const { status } = httpProblems[code];
  const { detail } = moreOf(error);
  if (status >= 500) return typeof detail === 'string' ? { detail } : {};
  // The same for every reason: it tells a stranger nothing, but an honest client what to send.
  const elsewhere = ctx.get('Authorization') === '' ? '' : ', not in Authorization';
  const refused = `Send a valid API key in the header ${headers.apiKey}${elsewhere}: it is missing, malformed, unknown, expired or revoked, or its tenant is deleted.`;
  return { detail: code === 'key_refused' ? refused : messageOf(error) };
};

const respondWithProblem = (ctx: ApiContext, error: unknown, settings: ApiSettings): void => {
  const thrown = codeOf(error);
  const code = thrown !== undefined && isHttpProblemCode(thrown) ? thrown : 'internal_error';
  noteProblem(ctx, code, error);
  ctx.status = httpProblems[code].status;
  ctx.set(headersOf(code, error));
  const body = {
    ...problemOf(code, settings.publicUrl),
    ...detailOf(code, error, ctx, settings),
    instance: ctx.path,
    trace_id: ctx.state.traceId,
    ...ownMembers(code, error),
  };
  // It quotes parts of the request, such as its path, and a key may have been sent there.
  ctx.body = masked(JSON.stringify(body));
  ctx.type = PROBLEM_TYPE;
};

/** Turns whatever is thrown below into a problem response. */
export const catchProblems =
  ({ settings }: Pick<ApiDependencies, 'settings'>): ApiMiddleware =>
  async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      respondWithProblem(ctx, error, settings);
    }
  };

/** Stands in for the address of a peer that has already disconnected. */
const GONE = 'gone';

/** The address that the outermost trusted proxy saw; without one, or if it wrote no address, that of the connection. */
const clientAddress = (ctx: ApiContext): string =>
  countedAddress(ctx.ip) ?? countedAddress(ctx.req.socket.remoteAddress ?? '') ?? GONE;

const rateLimited = ({ policy, retryAfter }: LimitExceeded): Fault =>
  fault(
    'rate_limited',
    `The limit "${policy.name}" is ${policy.limit} requests in ${policy.windowSeconds} seconds. Try again after ${retryAfter} seconds.`,
    { violated_policies: [policy.name], retryAfter, reason: `limit ${policy.name}` },
  );

const logBlock = (ctx: ApiContext, { policy }: LimitExceeded, logger: Logger): void => {
  const { traceId: trace_id, clientAddress: client_address } = ctx.state;
  const { name: limit, blockSeconds: block_seconds } = policy;
  const line = { trace_id, limit, client_address, block_seconds };
  logger.warn(line, 'a client exceeded a rate limit and is blocked');
};

/** Counts every request that the parser accepted, so that even refused ones get the rate limit headers. */
export const limitRequests =
  (dependencies: ApiDependencies): ApiMiddleware =>
  async (ctx, next) => {
    const { limits, logger } = dependencies;
    ctx.state.clientAddress = clientAddress(ctx);
    const { path, clientAddress: address } = ctx.state;
    const ofService = () => isKnownService(ctx, dependencies);
    const { fields, refused } = await limits.count(ctx.method, path, address, ofService);
    if (fields !== undefined) ctx.set(fields);
    if (refused === undefined) return next();
    if (refused.blockStarted) logBlock(ctx, refused, logger);
    ctx.state.refusedBy = refused.policy.name;
    throw rateLimited(refused);
  };
