import { httpProblems, type HttpProblemCode } from '../../problems';
import type { HeaderNames, ApiSettings } from '../context';
import { changesSomething, mayBeUnchanged, statusOf, type NamedRoute, type Route } from '../route';
import { sampleOf, text, type Schema } from '../schema';
import { openApiComponents, type Components } from './components';

const DESCRIPTION = [
  'Permissions, audit logs, tenants and the tenant usage report.\n',
  'Every path answers HEAD like GET, without a body, and OPTIONS with 204 and `Allow`.',
  'Without a valid key everything but this document, its viewer at `/docs` and `/problems/{code}` is 401; what does not exist is 404 or 405.',
  'Every error has a problem body (RFC 9457) with a stable `code`; `/problems/{code}` explains it. Operations list theirs; each may besides answer 400, 401, 429, 500 or 503, and 413 or 415 to a body.',
  'Responses may gain members in later releases.',
  'Lengths are counted in UTF-16 units: a character outside the Basic Multilingual Plane counts as two.',
].join('\n- ');

const LICENSE = { name: 'Apache-2.0', identifier: 'Apache-2.0' };

const TAGS = {
  Permissions: 'What an Application may be allowed to do.',
  Logs: 'The audit log of the Tenant that owns the key.',
  Events: 'The events behind the audit log, as they are stored.',
  Evidence: 'Signed checkpoints of the log, and proofs of what is in it.',
  Tenants: 'The Tenant that owns the key.',
  Applications: 'The Applications of the Tenant, and their keys.',
  Reports: 'What the Tenant uses.',
  Limits: 'Rate limits per client address.',
  Services: 'For programs of the operator that serve all tenants, with keys of their own.',
};

/** A viewer shows an example in the schema, but does not send it: one of the parameter itself it would fill in. */
const parameter = (
  place: 'header' | 'path' | 'query',
  name: string,
  { description, schema = text, example }: Schema & { readonly schema?: Schema },
): Schema => ({
  name,
  in: place,
  required: place === 'path',
  description,
  schema: example === undefined ? schema : { ...schema, examples: [example] },
});

const KEY_EXAMPLE = 'key_…';
const idempotencyKey = { schema: { type: 'string', pattern: '^[!-~]{1,255}$' }, example: 'order-4711' };

const requestHeaders = (names: HeaderNames): Readonly<Record<string, Schema>> => ({
  [names.traceId]: {
    description: 'A trace id of your own: 1 to 128 of A-Z a-z 0-9 . _ : -',
    example: 'checkout-42',
  },
  'If-None-Match': { description: 'Respond with 304 if this is still the entity tag.', example: '"7"' },
  'If-Match': { description: 'Make the change only if this is still the entity tag.', example: '"7"' },
  [names.idempotencyKey]: {
    ...idempotencyKey,
    description: '1 to 255 visible ASCII characters. The same key and body again get the same response.',
  },
  [names.verifyKey]: { description: 'The key that a client has sent.', example: KEY_EXAMPLE },
  'Idempotency-Key': { ...idempotencyKey, description: `The same as ${names.idempotencyKey}.` },
});

const isOfTenant = (route: Route): boolean => changesSomething(route) && route.service === undefined;

const headerParameters = (route: Route, names: HeaderNames): readonly Schema[] => {
  const isWrite = isOfTenant(route);
  const taken = [
    names.traceId,
    ...(mayBeUnchanged(route) ? ['If-None-Match'] : []),
    ...(isWrite && route.isUnconditional !== true ? ['If-Match'] : []),
    ...(isWrite ? [names.idempotencyKey, 'Idempotency-Key'] : []),
    ...(route.header === undefined ? [] : [names[route.header]]),
  ];
  const headers = requestHeaders(names);
  return taken.map((name) => parameter('header', name, headers[name] ?? {}));
};

/** In the syntax of the router. */
const PATH_PARAMETER = /\/:([a-z_]+)/g;

const pathParameters = ({ path, params = {} }: Route): readonly Schema[] =>
  [...path.matchAll(PATH_PARAMETER)].map(([, name = '']) => {
    const { description, ...schema }: Schema = params[name] ?? text;
    return parameter('path', name, { description, schema });
  });

const queryParameters = ({ query }: Route): readonly Schema[] =>
  Object.entries(query ?? {}).map(([name, declared]) => parameter('query', name, { ...declared }));

const PROBLEM = '#/components/responses/Problem';

const contentOf = ({ response }: Route, { published }: Components): { readonly content?: Schema } => {
  if ('media' in response) {
    // OpenAPI 3.1 cannot describe lines.
    const line = response.lines === undefined ? {} : { 'x-line-schema': published(response.lines) };
    const media = Object.entries(response.media).map(([type, whole]) => [type, { ...whole, ...line }]);
    return { content: Object.fromEntries(media) as Schema };
  }
  if (!('schema' in response)) return {};
  const { schema, example = sampleOf(schema), showsKey } = response;
  const shown = showsKey === true ? { ...(example as object), key: KEY_EXAMPLE } : example;
  return { content: { 'application/json': { schema: published(schema), example: shown } } };
};

/** As the proxies want it that ask before they forward. */
const refusedWithoutBody = (names: readonly string[], { problem, headers }: Components): Schema => {
  const body = 'It has a body only if it is the key of the service that is refused.';
  const refused = { content: problem['content'], headers: headers('WWW-Authenticate', ...names) };
  return {
    401: { ...refused, description: `The key is not valid. ${body}` },
    403: { ...refused, description: `The key is valid, but lacks the permission. ${body}` },
  };
};

const grants = ({ path, method }: Route): boolean =>
  /^\/app.*(s|:id|keys|regenerate)$/.test(path) && method !== 'get' && method !== 'delete';

/** Which operations answer with a code, besides the statuses that `DESCRIPTION` names for all. */
const answeredBy: Partial<Record<HttpProblemCode, (route: Route) => boolean>> = {
  service_only: ({ service }) => service !== undefined,
  tenant_only: ({ service }) => service === undefined,
  permission_missing: ({ permission }) => permission !== undefined,
  permission_not_held: grants,
  not_found: ({ path, method }) => path === '/tenants/self' && method === 'get',
  event_not_found: ({ path }) => path.startsWith('/events/'),
  application_not_found: ({ path }) => path.startsWith('/applications/:'),
  key_not_found: ({ path }) => /:key_id|find$/.test(path),
  idempotency_in_progress: isOfTenant,
  application_type_fixed: (route) => grants(route) && route.method === 'put',
  quota_exceeded: (route) => grants(route) && route.method === 'post',
  precondition_failed: (route) => isOfTenant(route) && route.isUnconditional !== true,
  idempotency_key_reused: isOfTenant,
};

const problemsOf = (route: Route): Schema => {
  const byStatus: Record<number, { readonly $ref: string; readonly description: string }> = {};
  for (const [code, isAnsweredBy] of Object.entries(answeredBy)) {
    const { status } = httpProblems[code as HttpProblemCode];
    const { [status]: before } = byStatus;
    const description = before === undefined ? code : `${before.description}, ${code}`;
    if (isAnsweredBy(route)) byStatus[status] = { $ref: PROBLEM, description };
  }
  return byStatus;
};

const responsesOf = (route: Route, names: HeaderNames, components: Components): Schema => {
  const { response, reads } = route;
  const own = 'headers' in response ? response.headers.map((name) => names[name]) : undefined;
  const headers = components.headers(
    ...('etag' in response ? ['ETag'] : []),
    ...(changesSomething(route) ? [names.readPending] : []),
    ...(isOfTenant(route) ? [names.replayed] : []),
    ...(reads === true ? [names.completeUntil] : []),
    ...(own ?? []),
  );
  const { description } = response;
  return {
    [statusOf(response)]: { description, headers, ...contentOf(route, components) },
    ...(mayBeUnchanged(route)
      ? { 304: { description: 'Not modified since `If-None-Match`.', headers } }
      : {}),
    ...problemsOf(route),
    ...(own === undefined ? {} : refusedWithoutBody(own, components)),
    default: { $ref: PROBLEM },
  };
};

const bodyOf = ({ body, lines }: Route, { published }: Components): { readonly requestBody?: Schema } => {
  if (body === undefined) return {};
  const content = {
    'application/json': { schema: published(body.schema), example: body.example },
    ...(lines === undefined ? {} : { 'application/x-ndjson': { schema: text, example: lines } }),
  };
  return { requestBody: { required: !body.isOptional, content } };
};

const whoMay = ({ service, permission }: Route): string => {
  if (service !== undefined) return `Needs the key of a service that may \`${service}\`.`;
  return permission === undefined ? 'Any valid API key.' : `Needs the permission \`${permission}\`.`;
};

const operationOf = (route: NamedRoute, names: HeaderNames, components: Components): Schema => ({
  operationId: route.operationId,
  summary: route.summary,
  tags: [route.tag],
  description: whoMay(route),
  parameters: [...pathParameters(route), ...queryParameters(route), ...headerParameters(route, names)],
  ...bodyOf(route, components),
  responses: responsesOf(route, names, components),
});

/** The OpenAPI 3.1 document, generated from the declared routes with the schemas that validate requests. */
export const openApiDocument = (
  routes: readonly NamedRoute[],
  { headers: names, publicUrl, version }: Pick<ApiSettings, 'headers' | 'publicUrl' | 'version'>,
): Schema => {
  const components = openApiComponents(names);
  const paths: Record<string, Record<string, Schema>> = {};
  for (const route of routes) {
    const path = (paths[route.path.replace(PATH_PARAMETER, '/{$1}')] ??= {});
    path[route.method] = operationOf(route, names, components);
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Tenant Ledger', version, description: DESCRIPTION, license: LICENSE },
    servers: [{ url: publicUrl === '' ? '/' : publicUrl }],
    security: [{ apiKey: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: components.all(),
  };
};
