import type { HeaderNames } from '../../configuration';
import { moment, text, type Schema } from '../schema';

const always = (description: string): Schema => ({ description, schema: text, required: true });

export const optional = (description: string, schema = text): Schema => ({
  description,
  schema,
  required: false,
});

const TRUE: Schema = { const: 'true' };

/** Described once, and referenced by every response that may have them. */
export const sharedHeaders = (names: HeaderNames): Schema => ({
  [names.traceId]: always('The trace id of the request.'),
  'Cache-Control': always('How it may be cached.'),
  'RateLimit-Policy': optional('The rate limits that count this request.'),
  RateLimit: optional('What is left of them.'),
  ETag: optional(
    `The entity tag of the Tenant or the Application, for \`If-Match\` and \`If-None-Match\`. A response with \`${names.completeUntil}\` has none.`,
  ),
  [names.readPending]: optional('The change is made, but reads may not show it yet.', TRUE),
  [names.replayed]: optional(
    'The request was made before, with the same idempotency key: this is its response again.',
    TRUE,
  ),
  [names.completeUntil]: optional(
    'What was recorded from this moment on may be missing in this response.',
    moment,
  ),
});

/** References to the headers of every response, and to these. */
export const headersFor =
  ({ traceId }: HeaderNames) =>
  (own: readonly string[]): Schema =>
    Object.fromEntries(
      [traceId, 'Cache-Control', 'RateLimit-Policy', 'RateLimit', ...own].map((name) => [
        name,
        { $ref: `#/components/headers/${name}` },
      ]),
    );

export type HeadersFor = ReturnType<typeof headersFor>;
