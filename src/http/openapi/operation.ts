import type { HeaderNames } from '../../configuration';
import { CSV } from '../../csv';
import { mayBeUnchanged, takesCondition, type SuccessResponse, type Route } from '../route';
import { sampleOf, text, type Schema } from '../schema';
import type { HeadersFor } from './response-headers';
import type { NamedSchemas } from './named-schemas';

/** The optional headers of a successful response. */
const optionalHeaders = ({ method, isQuery }: Route, names: HeaderNames): readonly string[] => [
  ...(method === 'get' ? [] : [names.readPending, names.replayed]),
  ...(isQuery === true ? [names.completeUntil] : []),
];

/** OpenAPI 3.1 cannot describe lines. */
const streamContent = (
  { lines, media }: Extract<SuccessResponse, { lines: Schema }>,
  schemas: NamedSchemas,
): Schema => {
  const line = schemas.published(lines);
  return Object.fromEntries(
    Object.entries(media).map(([type, whole]) => [type, { ...whole, 'x-line-schema': line }]),
  );
};

const successResponses = (
  route: Route,
  names: HeaderNames,
  headers: HeadersFor,
  schemas: NamedSchemas,
): Record<string, Schema> => {
  const response: SuccessResponse = route.response;
  const tag = 'etag' in response ? ['ETag'] : [];
  const common = {
    description: response.description,
    headers: headers([...tag, ...optionalHeaders(route, names)]),
  };
  if ('lines' in response) return { 200: { ...common, content: streamContent(response, schemas) } };
  if (!('schema' in response)) return { [response.status]: common };
  const full = {
    ...common,
    content: {
      'application/json': {
        schema: schemas.published(response.schema),
        example: response.example ?? sampleOf(response.schema),
      },
      ...(response.csv === undefined ? {} : { [CSV]: { schema: text, example: response.csv } }),
    },
  };
  if (!mayBeUnchanged(route)) return { [response.status]: full };
  const notModified = { ...common, description: 'Not modified since `If-None-Match`.' };
  return { [response.status]: full, 304: notModified };
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

const requestHeader = (name: string, description: string, example: string, schema = text): Schema =>
  parameter('header', name, { description, schema, example });

const IDEMPOTENCY = '1 to 255 visible ASCII characters. The same key and body again get the same response.';
const idempotencyKey: Schema = { type: 'string', pattern: '^[!-~]{1,255}$' };

const requestHeaders = (route: Route, names: HeaderNames): readonly Schema[] => [
  requestHeader(names.traceId, 'A trace id of your own: 1 to 128 of A-Z a-z 0-9 . _ : -', 'checkout-42'),
  ...(mayBeUnchanged(route)
    ? [requestHeader('If-None-Match', 'Respond with 304 if this is still the entity tag.', '"7"')]
    : []),
  ...(takesCondition(route)
    ? [requestHeader('If-Match', 'Make the change only if this is still the entity tag.', '"7"')]
    : []),
  ...(route.method === 'get'
    ? []
    : [
        requestHeader(names.idempotencyKey, IDEMPOTENCY, 'order-4711', idempotencyKey),
        requestHeader(
          'Idempotency-Key',
          `The same as ${names.idempotencyKey}.`,
          'order-4711',
          idempotencyKey,
        ),
      ]),
];

/** In the syntax of the router. */
export const PATH_PARAMETER = /\/:([a-z_]+)/g;

const pathParameters = ({ path, params = {} }: Route): readonly Schema[] =>
  [...path.matchAll(PATH_PARAMETER)].map(([, name = '']) => parameter('path', name, params[name] ?? {}));

const queryParameters = ({ query }: Route): readonly Schema[] =>
  Object.entries(query?.parameters ?? {}).map(([name, { description, schema, example }]) =>
    parameter('query', name, { description, schema, example }),
  );

export const operation = (
  route: Route,
  names: HeaderNames,
  headers: HeadersFor,
  schemas: NamedSchemas,
): Schema => ({
  operationId: route.operationId,
  summary: route.summary,
  tags: [route.tag],
  description:
    route.permission === undefined ? 'Any valid API key.' : `Needs the permission \`${route.permission}\`.`,
  parameters: [...pathParameters(route), ...queryParameters(route), ...requestHeaders(route, names)],
  ...(route.body === undefined
    ? {}
    : {
        requestBody: {
          required: !route.body.isOptional,
          content: {
            'application/json': {
              schema: schemas.published(route.body.schema),
              example: route.body.example,
            },
          },
        },
      }),
  responses: {
    ...successResponses(route, names, headers, schemas),
    default: { $ref: '#/components/responses/Problem' },
  },
});
