import { headerOf, type ApiContext, type ApiParts } from '../api-context';

/** The headers of an answer that a page of another origin may read, besides the few that it always may. */
const exposed = ({ traceId, readPending, completeUntil, totalItems }: ApiParts['headers']): string =>
  [traceId, readPending, completeUntil, totalItems]
    .concat('ETag', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'WWW-Authenticate', 'Allow')
    .join(', ');

const allowed = ({ apiKey, traceId, idempotencyKey }: ApiParts['headers']): string =>
  [apiKey, traceId, idempotencyKey]
    .concat('Idempotency-Key', 'Content-Type', 'If-Match', 'If-None-Match', 'Last-Event-ID')
    .join(', ');

const METHODS = 'GET, HEAD, POST, PUT, DELETE';

/** How long a browser remembers what a preflight said. */
const MAX_AGE_SECONDS = 600;

/** Which pages of other origins may call the API. Keys are sent in a header, so there are no credentials to allow. */
export interface CrossOrigin {
  /** Lets the page that asks, if it is of an allowed origin, read the answer. */
  allow(ctx: ApiContext): void;
  /** Answers the question that a browser asks before such a page's request. False: it is no such question. */
  preflight(ctx: ApiContext): boolean;
}

export const crossOrigin = ({ corsOrigins, headers }: ApiParts): CrossOrigin => {
  const origins = new Set(corsOrigins);
  const mayAsk = (origin: string | undefined): origin is string =>
    origin !== undefined && (origins.has('*') || origins.has(origin));

  return {
    allow: (ctx) => {
      if (origins.size === 0) return;
      ctx.vary('Origin');
      const origin = headerOf(ctx, 'origin');
      if (!mayAsk(origin)) return;
      ctx.set('Access-Control-Allow-Origin', origins.has('*') ? '*' : origin);
      ctx.set('Access-Control-Expose-Headers', exposed(headers));
    },
    preflight: (ctx) => {
      const isAsked =
        ctx.method === 'OPTIONS' && headerOf(ctx, 'access-control-request-method') !== undefined;
      if (!isAsked || !mayAsk(headerOf(ctx, 'origin'))) return false;
      ctx.set('Access-Control-Allow-Methods', METHODS);
      ctx.set('Access-Control-Allow-Headers', allowed(headers));
      ctx.set('Access-Control-Max-Age', String(MAX_AGE_SECONDS));
      ctx.status = 204;
      return true;
    },
  };
};
