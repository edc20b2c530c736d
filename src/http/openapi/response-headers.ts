import type { HeaderNames } from '../../configuration';
import { moment, text, type Schema } from '../routes/schema';

/** All response headers. */
const responseHeaders = (names: HeaderNames): Record<string, Schema> => ({
  [names.traceId]: { description: 'The trace id of the request.', schema: text },
  'Cache-Control': { description: 'How it may be cached.', schema: text },
  'RateLimit-Policy': { description: 'The rate limits that count this request.', schema: text },
  RateLimit: { description: 'What is left of them.', schema: text },
  ETag: {
    description: 'The entity tag of the Tenant or the Application, for `If-Match` and `If-None-Match`.',
    schema: text,
  },
  Allow: { description: 'The methods of this path.', schema: text },
  'Retry-After': {
    description: 'Seconds to wait before the next attempt.',
    schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
  },
  'WWW-Authenticate': { description: 'How to authenticate.', schema: text },
  [names.readPending]: {
    description: 'The change is made, but reads may not show it yet.',
    schema: { const: 'true' },
  },
  [names.replayed]: {
    description: 'The request was made before, with the same idempotency key: this is its response again.',
    schema: { const: 'true' },
  },
  [names.completeUntil]: {
    description: 'What was recorded from this moment on may be missing in this response.',
    schema: moment,
  },
  [names.totalItems]: {
    description: 'The list is truncated; this is the full number of items.',
    schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
  },
  Vary: { description: 'What the response depends on.', schema: text },
});

const ALWAYS = ['Cache-Control'];
const SOMETIMES = ['RateLimit-Policy', 'RateLimit'];

/** Every other header that is listed for a response is always there. */
const isOptional = (
  name: string,
  { readPending, replayed, completeUntil, totalItems }: HeaderNames,
): boolean => [...SOMETIMES, readPending, replayed, completeUntil, totalItems].includes(name);

/** The name of the optional variant of a header that is required in other responses. */
const maybe = (name: string): string => `${name}-Optional`;

/** Described once, and referenced by every response. */
export const sharedHeaders = (names: HeaderNames): Schema => {
  const headers = responseHeaders(names);
  const entries = Object.entries(headers).map(([name, header]): [string, Schema] => [
    name,
    { ...header, required: !isOptional(name, names) },
  ]);
  const retryAfter = { ...headers['Retry-After'], required: false };
  return Object.fromEntries([...entries, [maybe('Retry-After'), retryAfter]]);
};

export const headersFor =
  ({ traceId }: HeaderNames) =>
  (own: readonly string[], optional: readonly string[] = []): Schema => {
    const ref = (name: string): Schema => ({ $ref: `#/components/headers/${name}` });
    return Object.fromEntries([
      ...[traceId, ...ALWAYS, ...SOMETIMES, ...own].map((name) => [name, ref(name)]),
      ...optional.map((name) => [name, ref(maybe(name))]),
    ]) as Schema;
  };

export type HeadersFor = ReturnType<typeof headersFor>;
