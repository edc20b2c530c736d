import type { HeaderNames } from '../../configuration';
import { moment, text, type Schema } from '../routes/schema';

const header = (description: string, { schema = text, required = true } = {}): Schema => ({
  description,
  schema,
  required,
});

const POSITIVE: Schema = { type: 'string', pattern: '^[1-9][0-9]*$' };
const TRUE: Schema = { const: 'true' };
const WAIT = 'Seconds to wait before the next attempt.';

/** The name of the optional variant of a header that is required in other responses. */
const maybe = (name: string): string => `${name}-Optional`;

/** Described once, and referenced by every response. A required one is always there if it is listed for a response. */
export const sharedHeaders = (names: HeaderNames): Schema => ({
  [names.traceId]: header('The trace id of the request.'),
  'Cache-Control': header('How it may be cached.'),
  'RateLimit-Policy': header('The rate limits that count this request.', { required: false }),
  RateLimit: header('What is left of them.', { required: false }),
  ETag: header('The entity tag of the Tenant or the Application, for `If-Match` and `If-None-Match`.'),
  Allow: header('The methods of this path.'),
  'Retry-After': header(WAIT, { schema: POSITIVE }),
  'WWW-Authenticate': header('How to authenticate.'),
  [names.readPending]: header('The change is made, but reads may not show it yet.', {
    schema: TRUE,
    required: false,
  }),
  [names.replayed]: header(
    'The request was made before, with the same idempotency key: this is its response again.',
    { schema: TRUE, required: false },
  ),
  [names.completeUntil]: header('What was recorded from this moment on may be missing in this response.', {
    schema: moment,
    required: false,
  }),
  Vary: header('What the response depends on.'),
  [maybe('Retry-After')]: header(WAIT, { schema: POSITIVE, required: false }),
});

/** Of every response, the last two only if it was counted. */
const COMMON = ['Cache-Control', 'RateLimit-Policy', 'RateLimit'];

export const headersFor =
  ({ traceId }: HeaderNames) =>
  (own: readonly string[], optional: readonly string[] = []): Schema => {
    const ref = (name: string): Schema => ({ $ref: `#/components/headers/${name}` });
    return Object.fromEntries([
      ...[traceId, ...COMMON, ...own].map((name) => [name, ref(name)]),
      ...optional.map((name) => [name, ref(maybe(name))]),
    ]) as Schema;
  };

export type HeadersFor = ReturnType<typeof headersFor>;
