import { headerOf, type ApiContext, type ApiParts } from '../api-context';

/** The response headers that a page of another origin may read, besides the safelisted ones. */
const exposedHeaders = ({ traceId, readPending, completeUntil, totalItems }: ApiParts['headers']): string =>
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

const allowedHeaders = ({ apiKey, traceId, idempotencyKey }: ApiParts['headers']): string =>
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

const METHODS = 'GET, HEAD, POST, PUT, DELETE';

/** How long a browser may cache a preflight response. */
const MAX_AGE_SECONDS = 600;

/** Which pages of other origins may call the API. Keys are sent in a header, so there are no credentials to allow. */
export interface CrossOrigin {
  /** Lets the calling page read the response if its origin is allowed. */
  allow(ctx: ApiContext): void;
  /** Responds to a preflight from an allowed origin. False: the request is not one. */
  preflight(ctx: ApiContext): boolean;
}

export const crossOrigin = ({ corsOrigins, headers }: ApiParts): CrossOrigin => {
  const origins = new Set(corsOrigins);
  const isAllowed = (origin: string | undefined): origin is string =>
    origin !== undefined && (origins.has('*') || origins.has(origin));

  return {
    allow: (ctx) => {
      if (origins.size === 0) return;
      ctx.vary('Origin');
      const origin = headerOf(ctx, 'origin');
      if (!isAllowed(origin)) return;
      ctx.set('Access-Control-Allow-Origin', origins.has('*') ? '*' : origin);
      ctx.set('Access-Control-Expose-Headers', exposedHeaders(headers));
    },
    preflight: (ctx) => {
      const isPreflight =
        ctx.method === 'OPTIONS' && headerOf(ctx, 'access-control-request-method') !== undefined;
      if (!isPreflight || !isAllowed(headerOf(ctx, 'origin'))) return false;
      ctx.set('Access-Control-Allow-Methods', METHODS);
      ctx.set('Access-Control-Allow-Headers', allowedHeaders(headers));
      ctx.set('Access-Control-Max-Age', String(MAX_AGE_SECONDS));
      ctx.status = 204;
      return true;
    },
  };
};
