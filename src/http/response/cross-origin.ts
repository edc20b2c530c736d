import cors from '@koa/cors';
import type { ApiContext, ApiDependencies } from '../api-context';

/** The response headers that a page of another origin may read, besides the safelisted ones. */
const exposedHeaders = ({
  traceId,
  readPending,
  completeUntil,
  totalItems,
}: ApiDependencies['headers']): string =>
  [traceId, readPending, completeUntil, totalItems]
    .concat(
      'ETag',
      'RateLimit',
      'RateLimit-Policy',
      'Retry-After',
      'WWW-Authenticate',
      'Allow',
      'traceparent',
    )
    .join(', ');

const allowedHeaders = ({ apiKey, traceId, idempotencyKey }: ApiDependencies['headers']): string =>
  [apiKey, traceId, idempotencyKey]
    .concat(
      'Idempotency-Key',
      'Content-Type',
      'If-Match',
      'If-None-Match',
      'Last-Event-ID',
      'traceparent',
      'tracestate',
    )
    .join(', ');

/** How long a browser may cache a preflight response. */
const MAX_AGE_SECONDS = 600;

/**
 * Lets the calling page read the response if its origin is allowed. True: the request is a preflight of such a page and
 * needs no other response. Keys are sent in a header, so there are no credentials to allow.
 */
export const crossOrigin = ({
  corsOrigins,
  headers,
}: ApiDependencies): ((ctx: ApiContext) => Promise<boolean>) => {
  if (corsOrigins.length === 0) return async () => false;
  const allow = cors({
    origin: (ctx) => {
      const origin = ctx.get('Origin');
      if (corsOrigins.includes('*')) return origin && '*';
      return corsOrigins.includes(origin) ? origin : '';
    },
    allowMethods: 'GET, HEAD, POST, PUT, DELETE',
    exposeHeaders: exposedHeaders(headers),
    allowHeaders: allowedHeaders(headers),
    maxAge: MAX_AGE_SECONDS,
  });
  return async (ctx) => {
    let isPreflight = true;
    await allow(ctx, async () => void (isPreflight = false));
    return isPreflight;
  };
};
