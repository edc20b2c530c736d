import cors from '@koa/cors';
import type { ApiMiddleware, ApiSettings } from '../context';

/** The response headers that a page of another origin may read, besides the safelisted ones. */
const EXPOSED = 'ETag, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, Allow';

const ALLOWED =
  'Idempotency-Key, Content-Type, If-Match, If-None-Match, Last-Event-ID, traceparent, tracestate';

/** How long a browser may cache a preflight response. */
const MAX_AGE_SECONDS = 600;

/**
 * Lets the calling page read the response if its origin is allowed. Keys are sent in a header, so there are no
 * credentials to allow.
 */
export const crossOrigin = ({ corsOrigins, headers }: ApiSettings): ApiMiddleware => {
  const { apiKey, traceId, idempotencyKey, readPending, replayed, completeUntil } = headers;
  const allow = cors({
    origin: (ctx) => {
      const origin = ctx.get('Origin');
      if (corsOrigins.includes('*')) return origin && '*';
      return corsOrigins.includes(origin) ? origin : '';
    },
    allowMethods: 'GET, HEAD, POST, PUT, DELETE',
    exposeHeaders: [traceId, readPending, replayed, completeUntil, EXPOSED].join(', '),
    allowHeaders: [apiKey, traceId, idempotencyKey, ALLOWED].join(', '),
    maxAge: MAX_AGE_SECONDS,
  });
  return async (ctx, next) => {
    ctx.state.isPreflight = true;
    await allow(ctx, async () => void (ctx.state.isPreflight = false));
    await next();
  };
};

/** A preflight has its response, but counts in the rate limits like any other request. */
export const endPreflight: ApiMiddleware = (ctx, next) =>
  ctx.state.isPreflight === true ? Promise.resolve() : next();
