import { applicationTypes } from '../../domain/permissions';
import { httpProblems, type HttpProblemCode } from '../../problems';
import { PROBLEM_TYPE } from '../response/problem-body';
import { takesCondition, type Route } from '../routes/route';
import { count, listOf, described, text, type Schema } from '../routes/schema';
import type { HeadersFor } from './response-headers';

/** The error responses of operations, generated from the table of problems. */

const reads = ({ method }: Route): boolean => method === 'get';
const writes = (route: Route): boolean => !reads(route);

const isAboutApplications = (path: string): boolean => path.startsWith('/applications');

/** Where a problem can occur. Problems not listed can occur anywhere. */
const where: Partial<Record<HttpProblemCode, (route: Route) => boolean>> = {
  permission_missing: ({ permission }) => permission !== undefined,
  unsupported_media_type: ({ body }) => body !== undefined,
  idempotency_in_progress: writes,
  idempotency_key_reused: writes,
  precondition_failed: takesCondition,
  outcome_unknown: writes,
  read_models_unavailable: reads,
  starting: reads,
  permission_not_held: ({ body, path }) => body !== undefined && isAboutApplications(path),
  application_not_found: ({ path }) => path.startsWith('/applications/:'),
  key_not_found: ({ path }) => path.includes('/:key_id'),
  application_type_fixed: ({ method, path }) => method === 'put' && isAboutApplications(path),
  too_many_applications: ({ method, path }) => method === 'post' && path === '/applications',
  too_many_keys: ({ method, path }) => method === 'post' && path.startsWith('/applications/'),
  upgrade_unfinished: writes,
  event_not_found: ({ path }) => path.startsWith('/events/'),
  too_many_streams: ({ path }) => path === '/events' || path === '/logs',
};

const codes = Object.keys(httpProblems) as readonly HttpProblemCode[];

/** The members of a problem's body besides those that all problems have. */
const extraMembers: Readonly<Record<string, Readonly<Record<string, Schema>>>> = {
  validation_failed: {
    errors: {
      type: 'object',
      description: 'What is wrong, by the name of the field as it was sent; `body` is the whole body.',
      additionalProperties: { ...listOf(text), minItems: 1 },
    },
  },
  permission_missing: {
    required_permission: described(text, 'The permission that the key lacks.', 'tenant:update'),
    application_type: described(
      { type: 'string', enum: applicationTypes },
      "The type of the key's Application.",
    ),
    assignable: described({ type: 'boolean' }, 'Whether an Application of this type may ever hold it.'),
  },
  permission_not_held: {
    missing_permissions: described({ ...listOf(text), minItems: 1 }, 'The permissions that the key lacks.'),
  },
  rate_limited: {
    violated_policies: described(
      { ...listOf(text), minItems: 1 },
      'The names of the limits that were exceeded.',
    ),
  },
  starting: {
    progress: {
      type: 'object',
      description: 'How far the read models are.',
      properties: {
        percent: described(count, 'How much they show of what there was at the start.'),
      },
      required: ['percent'],
    },
  },
};

export const ownMembersOf = (code: HttpProblemCode): readonly string[] =>
  Object.keys(extraMembers[code] ?? {});

/** The headers that an error of this status always has. */
const problemHeaderNames: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  412: ['ETag'],
  429: ['Retry-After'],
};

/** The headers that it may have: not every 409 or 503 is transient. */
const optionalHeaderNames: Readonly<Record<number, readonly string[]>> = {
  409: ['Retry-After'],
  503: ['Retry-After'],
};

const schemaName = (code: string): string =>
  `${code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Problem`;

const problemSchema = (code: HttpProblemCode): Schema => {
  const { status, title } = httpProblems[code];
  const extra = extraMembers[code] ?? {};
  const own = {
    status: { type: 'integer', const: status, description: 'The HTTP status.' },
    code: { type: 'string', const: code, description: 'A stable name, for programs.' },
    title: { type: 'string', const: title, description: 'The kind of error, always in the same words.' },
    ...extra,
  };
  const common = {
    type: {
      type: 'string',
      pattern: `problems/${code}$`, // some generators take a leading slash for a delimiter
      description: 'The address of a page about this kind of error.',
    },
    detail: { type: 'string', minLength: 1, description: 'What was wrong with this request.' },
    instance: {
      type: 'string',
      pattern: '^(/|\\*$)',
      description: 'The path that was asked for, without its query.',
    },
    trace_id: {
      type: 'string',
      pattern: '^[A-Za-z0-9._:-]{1,128}$',
      description: "Finds the request in the service's log.",
    },
  };
  const properties = { ...common, ...own };
  return { type: 'object', properties, required: Object.keys(properties) };
};

export const problemSchemas = (): Readonly<Record<string, Schema>> =>
  Object.fromEntries(codes.map((code) => [schemaName(code), problemSchema(code)]));

const ref = (code: string): Schema => ({ $ref: `#/components/schemas/${schemaName(code)}` });

/** Error responses by status, in ascending order. */
export const responsesOf = (
  possible: readonly HttpProblemCode[],
  headersOf: HeadersFor,
): Readonly<Record<string, Schema>> => {
  const responses: Record<string, Schema> = {};
  for (const status of new Set(possible.map((code) => httpProblems[code].status))) {
    const own = possible.filter((code) => httpProblems[code].status === status);
    const schema = own.length === 1 ? ref(own[0] as string) : { oneOf: own.map(ref) };
    responses[status] = {
      description: own.map((code) => httpProblems[code].title).join(' Or: '),
      headers: headersOf(problemHeaderNames[status] ?? [], optionalHeaderNames[status]),
      content: { [PROBLEM_TYPE]: { schema } },
    };
  }
  return responses;
};

export const problemResponses = (route: Route, headersOf: HeadersFor): Readonly<Record<string, Schema>> =>
  responsesOf(
    codes.filter((code) => where[code]?.(route) ?? true),
    headersOf,
  );

/** For pages that need no key. Any other path is 401 without a valid key, and 404 with one. */
export const codesWithoutKey: readonly HttpProblemCode[] = [
  'malformed_request',
  'key_refused',
  'not_found',
  'method_not_allowed',
  'request_too_slow',
  'body_too_large',
  'rate_limited',
  'headers_too_large',
  'internal_error',
];
