import { applicationTypes } from '../../domain/permissions';
import { httpProblems } from '../../problems';
import { PROBLEM_TYPE, problemBody } from '../middleware/problems';
import { count, described, listOf, record, text, type Schema } from '../schema';
import type { NamedSchemas } from './named-schemas';
import { optional, type HeadersFor } from './response-headers';

const common = {
  type: described(text, 'The address of a page about this kind of error.'),
  title: described(text, 'The kind of error, always in the same words.'),
  status: described({ type: 'integer', format: 'int64' }, 'The HTTP status.'),
  detail: described({ type: 'string', minLength: 1 }, 'What was wrong with this request.'),
  instance: described(text, 'The path that was asked for, without its query.'),
  code: described({ type: 'string', enum: Object.keys(httpProblems) }, 'A stable name, for programs.'),
  trace_id: described(
    { type: 'string', pattern: '^[A-Za-z0-9._:-]{1,128}$' },
    "Finds the request in the service's log.",
  ),
};

/** The `members` of single codes. */
const own = {
  errors: described(
    { type: 'object', additionalProperties: { ...listOf(text), minItems: 1 } },
    '`validation_failed`: what is wrong, by the name of the field as it was sent; `body` is the whole body.',
  ),
  required_permission: described(text, '`permission_missing`: what the key lacks.', 'tenant:update'),
  application_type: described(
    { type: 'string', enum: applicationTypes },
    "`permission_missing`: the type of the key's Application.",
  ),
  assignable: described(
    { type: 'boolean' },
    '`permission_missing`: whether an Application of this type may ever hold it.',
  ),
  missing_permissions: described(
    { ...listOf(text), minItems: 1 },
    '`permission_not_held`: the permissions that the key lacks.',
  ),
  violated_policies: described(
    { ...listOf(text), minItems: 1 },
    '`rate_limited`: the names of the limits that were exceeded.',
  ),
  progress: {
    type: 'object',
    description: '`starting`: how far the read models are.',
    properties: { percent: described(count, 'How much they show of what there was at the start.') },
    required: ['percent'],
  },
};

const schema = record('Problem', { ...common, ...own }, Object.keys(own));

const example = problemBody({
  code: 'precondition_failed',
  detail: 'The Tenant is not as If-Match or If-None-Match says.',
  instance: '/tenants/self',
  traceId: 'checkout-42',
  publicUrl: '',
});

/** The response to every request that did not succeed. */
export const problemResponse = (headers: HeadersFor, schemas: NamedSchemas): Schema => ({
  description: 'A problem (RFC 9457). `code` says which one; the page `/problems/{code}` says what to do.',
  headers: {
    ...headers([]),
    'Retry-After': optional('Seconds to wait before the next attempt, if it may succeed.'),
    'WWW-Authenticate': optional('401: how to authenticate.'),
    Allow: optional('405: the methods of this path.'),
    ETag: optional('412: the current entity tag.'),
  },
  content: { [PROBLEM_TYPE]: { schema: schemas.published(schema), example } },
});
