import { applicationTypes } from '../../domain/permissions';
import { MAX_NAME_LENGTH } from '../../domain/texts';
import { httpProblems } from '../../problems';
import type { HeaderNames } from '../context';
import { PROBLEM_TYPE, problemOf } from '../middleware';
import { count, described, listOf, moment, record, text, uuid, type Schema, oneOf } from '../schema';

/** What operations refer to: the headers of responses, the response to a failed request, and schemas with a title. */

const always = (description: string): Schema => ({ description, schema: text, required: true });
const sometimes = (description: string, schema = text): Schema => ({ description, schema, required: false });

const KEY = 'The key of an Application, or of a service where that is said.';

const TRUE: Schema = { const: 'true' };

const headersBy = (names: HeaderNames): Schema => ({
  [names.traceId]: always('The trace id of the request.'),
  'Cache-Control': always('How it may be cached.'),
  'RateLimit-Policy': sometimes('The rate limits that count this request.'),
  RateLimit: sometimes('What is left of them.'),
  ETag: sometimes(
    `The entity tag of the Tenant or the Application, for \`If-Match\` and \`If-None-Match\`. A response with \`${names.completeUntil}\` has none.`,
  ),
  [names.readPending]: sometimes('The change is made, but reads may not show it yet.', TRUE),
  [names.replayed]: sometimes(
    'The request was made before, with the same idempotency key: this is its response again.',
    TRUE,
  ),
  [names.completeUntil]: sometimes(
    'What was recorded from this moment on may be missing in this response.',
    moment,
  ),
  'WWW-Authenticate': sometimes('401: how to authenticate.'),
  [names.tenantId]: sometimes('The Tenant of the key.', uuid),
  [names.applicationId]: sometimes('The Application of the key.', uuid),
  [names.keyId]: sometimes('The id of the key.', uuid),
});

const commonMembers = {
  type: described(text, 'The address of a page about this kind of error.'),
  title: described(text, 'The kind of error, always in the same words.'),
  status: described({ type: 'integer', format: 'int64' }, 'The HTTP status.'),
  detail: described({ type: 'string', minLength: 1 }, 'What was wrong with this request.'),
  instance: described(text, 'The path that was asked for, without its query.'),
  code: described(
    text,
    `For programs. A later release may have others than ${Object.keys(httpProblems).join(', ')}.`,
    'precondition_failed',
  ),
  trace_id: described(
    { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' },
    "Finds the request in the service's log.",
  ),
};

const someTexts: Schema = { ...listOf(text), minItems: 1 };

/** The `members` of single codes. */
const ownMembers = {
  errors: described(
    { type: 'object', additionalProperties: someTexts },
    '`validation_failed`: what is wrong, by the name of the field as it was sent; `body` is the whole body.',
  ),
  required_permission: described(text, '`permission_missing`: what the key lacks.', 'tenant:update'),
  application_type: described(
    oneOf(applicationTypes),
    "`permission_missing`: the type of the key's Application.",
  ),
  assignable: described(
    { type: 'boolean' },
    '`permission_missing`: whether an Application of this type may ever hold it.',
  ),
  missing_permissions: described(someTexts, '`permission_not_held`: the permissions that the key lacks.'),
  violated_policies: described(someTexts, '`rate_limited`: the names of the limits that were exceeded.'),
  progress: {
    type: 'object',
    description: '`read_models_unavailable`: how far they are after a start.',
    properties: { percent: described(count, 'How much they show of what there was at the start.') },
    required: ['percent'],
  },
};

const problemSchema = record('Problem', { ...commonMembers, ...ownMembers }, Object.keys(ownMembers));

const problemExample = { ...problemOf('precondition_failed', ''), instance: '/tenants/self', trace_id: 'a1' };

/** Our own keyword `validName`, expressed in standard JSON Schema. */
const publishedName = ({ description }: Schema): Schema => ({
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  pattern: '\\S',
  description: `${String(description)} 1 to ${MAX_NAME_LENGTH} UTF-16 units (a character outside the Basic Multilingual Plane counts as two, unlike \`maxLength\` here), not blank, without a lone surrogate or an API key.`,
  examples: ['Acme'],
});

/** Collects schemas with a title, which become named ones and are referenced. */
const namedSchemas = () => {
  const named = new Map<string, Schema>();

  const publishedWithin = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(publishedWithin);
    return typeof value === 'object' && value !== null ? published(value as Schema) : value;
  };

  /** The schema as published. Its description says what it is for in that place, and stays there. */
  const published = (schema: Schema): Schema => {
    const { title, validName, ...rest } = schema;
    const members = Object.fromEntries(
      Object.entries(rest).map(([name, value]) => [name, publishedWithin(value)]),
    );
    const full = validName === true ? { ...members, ...publishedName(members) } : members;
    if (typeof title !== 'string')
      return title === undefined ? full : { ...full, title: publishedWithin(title) };
    const { description, ...own } = full;
    named.set(title, own);
    return { $ref: `#/components/schemas/${title}`, ...(description === undefined ? {} : { description }) };
  };

  return { published, all: (): Schema => Object.fromEntries(named) };
};

export const openApiComponents = (names: HeaderNames) => {
  const schemas = namedSchemas();

  const headers = (...own: readonly string[]): Schema => {
    const all = [names.traceId, 'Cache-Control', 'RateLimit-Policy', 'RateLimit', ...own];
    return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  };

  /** The response to every request that did not succeed. */
  const problem: Schema = {
    description: 'A problem (RFC 9457). `code` says which one; the page `/problems/{code}` says what to do.',
    headers: {
      ...headers(names.completeUntil, 'WWW-Authenticate'),
      'Retry-After': sometimes('Seconds to wait before the next attempt, if it may succeed.'),
      Allow: sometimes('405: the methods of this path.'),
      ETag: sometimes('412: the current entity tag.'),
    },
    content: { [PROBLEM_TYPE]: { schema: schemas.published(problemSchema), example: problemExample } },
  };

  return {
    published: schemas.published,
    headers,
    problem,
    /** Called last, when the schemas of all operations are known. */
    all: (): Schema => ({
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: names.apiKey, description: KEY } },
      headers: headersBy(names),
      responses: { Problem: problem },
      schemas: schemas.all(),
    }),
  };
};

export type Components = ReturnType<typeof openApiComponents>;
