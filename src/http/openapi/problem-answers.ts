import { problems, type HttpProblemCode } from '../../problems';
import { PROBLEM_TYPE } from '../problem-body';
import type { Route } from '../route';
import { count, listOf, record, text, uuid, type Schema } from '../schema';

/** Which errors an operation may answer with, and what they look like: from the table of problems. */

const reads = ({ method }: Route): boolean => method === 'get';
const writes = (route: Route): boolean => !reads(route);
const never = (): boolean => false;

/** Where a problem cannot occur is said here; one that is not listed may occur anywhere. */
const where: Partial<Record<HttpProblemCode, (route: Route) => boolean>> = {
  permission_missing: ({ permission }) => permission !== undefined,
  unsupported_media_type: ({ body }) => body !== undefined,
  idempotency_in_progress: writes,
  idempotency_key_reused: writes,
  precondition_failed: writes,
  outcome_unknown: writes,
  read_models_unavailable: reads,
  starting: reads,
  // Before the key is looked at, but only where there is one to look at.
  log_set_back: () => true,
  // A declared route is there, and has its method.
  not_found: never,
  method_not_allowed: never,
  // A promise: this one is a bug.
  internal_error: never,
};

const codes = Object.keys(problems).filter(
  (code) => problems[code as HttpProblemCode].status !== undefined,
) as readonly HttpProblemCode[];

/** What a problem's body has besides the members that all have. */
const more: Readonly<Record<string, Readonly<Record<string, Schema>>>> = {
  validation_failed: { errors: { type: 'object', additionalProperties: { ...listOf(text), minItems: 1 } } },
  permission_missing: {
    required_permission: text,
    application_type: { enum: ['public', 'private', 'management'] },
    assignable: { type: 'boolean' },
  },
  rate_limited: { violated_policies: { ...listOf(text), minItems: 1 } },
  starting: { progress: record('Progress', { events_done: count, events_total: count }) },
};

/** The headers that an error of this status always has. */
export const problemHeaderNames: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  409: ['Retry-After'],
  412: ['ETag'],
  429: ['Retry-After'],
};

/** The headers that it may have: not every 503 goes away by itself. */
const maybeHeaderNames: Readonly<Record<number, readonly string[]>> = { 503: ['Retry-After'] };

const schemaName = (code: string): string =>
  `${code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Problem`;

const problemSchema = (code: HttpProblemCode): Schema => {
  const { status, title } = problems[code];
  const extra = more[code] ?? {};
  const own = { status: { const: status }, code: { const: code }, title: { const: title }, ...extra };
  const common = {
    type: { type: 'string', pattern: `/problems/${code}$` },
    detail: { type: 'string', minLength: 1 },
    instance: { type: 'string', pattern: '^(/|\\*$)' },
    trace_id: { anyOf: [uuid, { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' }] },
  };
  const properties = { ...common, ...own };
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
};

export const problemSchemas = (): Readonly<Record<string, Schema>> =>
  Object.fromEntries(codes.map((code) => [schemaName(code), problemSchema(code)]));

const ref = (code: string): Schema => ({ $ref: `#/components/schemas/${schemaName(code)}` });

type HeadersOf = (names: readonly string[], optional?: readonly string[]) => Schema;

/** Errors as the answers of an operation: by status, lowest first. */
export const answersOf = (
  found: readonly HttpProblemCode[],
  headersOf: HeadersOf,
): Readonly<Record<string, Schema>> => {
  const answers: Record<string, Schema> = {};
  for (const status of new Set(found.map((code) => problems[code].status ?? 500))) {
    const own = found.filter((code) => problems[code].status === status);
    const schema = own.length === 1 ? ref(own[0] as string) : { oneOf: own.map(ref) };
    answers[status] = {
      description: own.map((code) => problems[code].title).join(' Or: '),
      headers: headersOf(problemHeaderNames[status] ?? [], maybeHeaderNames[status]),
      content: { [PROBLEM_TYPE]: { schema } },
    };
  }
  return answers;
};

export const problemAnswers = (route: Route, headersOf: HeadersOf): Readonly<Record<string, Schema>> =>
  answersOf(
    codes.filter((code) => where[code]?.(route) ?? true),
    headersOf,
  );

/** What can go wrong before a key is asked for: at the door, and in the limits. */
export const codesBeforeTheKey: readonly HttpProblemCode[] = codes.filter(
  (code) => where[code] === undefined && !['validation_failed', 'key_refused'].includes(code),
);
