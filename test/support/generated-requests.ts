import * as fc from 'fast-check';
import type { Route } from '../../src/http/route';
import type { Schema } from '../../src/http/schema';
import { anyCharacter } from './any-character';
import type { AskOptions } from './http';

/** Requests generated from the declared routes and their schemas: valid ones, and ones that are invalid somewhere. */
export interface Generated extends AskOptions {
  readonly path: string;
}

type Value = fc.Arbitrary<unknown>;

/** No lone surrogates: they cannot be sent. */
const anyText = fc.string({ unit: anyCharacter, maxLength: 30 });

const validName = fc
  .string({ unit: anyCharacter, minLength: 1, maxLength: 60 })
  .filter((name) => name.trim() !== '' && name.length <= 200 && !name.includes('\ufffd'));

/** The parser refuses this name wherever it occurs. */
const ignoredValue = fc
  .jsonValue({ maxDepth: 2 })
  .filter((value) => !JSON.stringify(value).includes('__proto__'));

const objectBy = ({ properties = {}, required = [] }: Schema): Value => {
  const known = Object.entries(properties as Record<string, Schema>).map(([name, schema]) => [
    name,
    valueBy(schema),
  ]);
  return fc.record(Object.fromEntries(known) as Record<string, Value>, {
    requiredKeys: required as string[],
  });
};

/** A few characters more than the least, and never too many. */
const lengthOf = ({ minLength = 1, maxLength = Infinity }: Schema) => ({
  minLength: Number(minLength),
  maxLength: Math.min(Number(minLength) + 20, Number(maxLength)),
});

/** Values that match a schema, as far as our schemas go. */
const valueBy = (schema: Schema): Value => {
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]));
  if (schema['validName'] === true) return validName;
  if (schema['readOnly'] === true) return ignoredValue;
  if (Array.isArray(schema['type']))
    return fc.oneof(...(schema['type'] as string[]).map((type) => valueBy({ ...schema, type })));
  switch (schema['type']) {
    case 'null':
      return fc.constant(null);
    case 'integer':
      return fc.integer({ min: Number(schema['minimum'] ?? 0), max: Number(schema['maximum'] ?? 1_000_000) });
    case 'boolean':
      return fc.boolean();
    case 'array':
      return schema['maxItems'] === 0
        ? fc.constant([])
        : fc.array(valueBy(schema['items'] as Schema), { maxLength: 4 });
    case 'object':
      return objectBy(schema);
    case 'string':
      if (schema['format'] === 'uuid') return fc.uuid();
      if (typeof schema['pattern'] === 'string') return fc.stringMatching(new RegExp(schema['pattern']));
      return schema['format'] === 'date-time'
        ? fc
            .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
            .map((at) => at.toISOString())
        : fc.string({ unit: 'grapheme-ascii', ...lengthOf(schema) });
    default:
      throw new Error(`No values are made for ${JSON.stringify(schema)}.`);
  }
};

const queryText = (pairs: readonly (readonly [string, string])[]): string => {
  const text = pairs
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join('&');
  return text === '' ? '' : `?${text}`;
};

/** Cursors cannot be guessed, an end must not be before a start, and a followed stream does not end. */
const NOT_RIGHT: Readonly<Record<string, readonly string[]>> = {
  '/logs': ['start', 'end_date'],
  '/logs/counts': ['start_date', 'end_date'],
  '/logs/csv': ['end_date'],
  '/events': ['after', 'end_date', 'follow', 'entity_type', 'entity_id'],
  '/tenants/self': ['as_of'],
  '/tenants/self/evidence/consistency': ['from'],
  '/applications': ['start', 'as_of'],
};

/**
 * What matches the schema of a body but may be refused by a decision: most texts are not permissions, and time passes.
 */
const NOT_RIGHT_IN_BODY = new Set(['permissions', 'expires_at']);

/** With any other filter, pages can be walked only by cursor, and nothing is counted. */
const ALONE = ['actor_id', 'operation', 'trace_id', 'source'];
const FILTERS = [...ALONE, 'entity_type', 'entity_id'];

const rightTogether = (path: string, given: Readonly<Record<string, unknown>>): typeof given => {
  const alone = ALONE.find((name) => name in given);
  if (alone === undefined) return given;
  const wrong = path === '/logs/counts' ? FILTERS.filter((name) => name !== alone) : ['page'];
  return Object.fromEntries(Object.entries(given).filter(([name]) => !wrong.includes(name)));
};

const rightQuery = ({ path, query }: Route): fc.Arbitrary<string> => {
  const known = Object.entries(query?.parameters ?? {}).filter(
    ([name]) => NOT_RIGHT[path]?.includes(name) !== true,
  );
  const values = Object.fromEntries(known.map(([name, { schema }]) => [name, valueBy(schema)]));
  return fc
    .record(values, { requiredKeys: [] })
    .map((given) =>
      queryText(
        Object.entries(rightTogether(path, given)).flatMap(([name, value]) =>
          [value].flat().map((one): [string, string] => [name, String(one)]),
        ),
      ),
    );
};

const rightBody = ({ body }: Route): Value => {
  if (body === undefined) return fc.constant(undefined);
  const known = Object.entries(body.schema['properties'] as Record<string, Schema>);
  const right = known.filter(([name]) => !NOT_RIGHT_IN_BODY.has(name));
  return valueBy({ ...body.schema, properties: Object.fromEntries(right) });
};

const rightHeaders = ({ method }: Route): fc.Arbitrary<Record<string, string>> => {
  const own: Record<string, fc.Arbitrary<string>> = method === 'get'
    ? { 'If-None-Match': fc.constantFrom('*', '"1"', 'W/"1"', '"1", "2"', 'nonsense') }
    : { 'Idempotency-Key': fc.stringMatching(/^[!-~]{16,39}$/) };
  const common = {
    'SVC-TRACE-ID': fc.stringMatching(/^[a-z0-9.:-]{1,40}$/),
    Accept: fc.constantFrom('*/*', 'application/json', 'text/html', 'application/problem+json'),
  };
  return fc.record({ ...common, ...own }, { requiredKeys: [] });
};

export const rightRequest = (route: Route): fc.Arbitrary<Generated> =>
  fc.tuple(rightQuery(route), rightBody(route), rightHeaders(route)).map(([query, body, headers]) => ({
    method: route.method.toUpperCase(),
    path: `${route.path}${query}`,
    headers,
    ...(body === undefined ? {} : { body }),
  }));

const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((c) => c !== 0x7f)
    .map((c) => String.fromCharCode(c)),
  maxLength: 40,
});

const wrongHeaders = fc.dictionary(
  fc.constantFrom(
    'SVC-TRACE-ID',
    'SVC-IDEMPOTENCY-KEY',
    'Idempotency-Key',
    'If-Match',
    'If-None-Match',
    'If-Modified-Since',
    'Accept',
    'Accept-Encoding',
    'Content-Type',
    'Content-Encoding',
    'Range',
    'X-Forwarded-For',
    'X-HTTP-Method-Override',
    'Cookie',
    'Origin',
    'Access-Control-Request-Method',
  ),
  fc.oneof(
    headerText,
    fc.constantFrom(
      '*',
      '"1"',
      'gzip',
      'br',
      'application/json; charset=utf-16',
      'text/plain',
      '"1","2",',
      ',',
    ),
  ),
  { maxKeys: 4 },
);

const wrongQuery = (names: readonly string[]): fc.Arbitrary<string> =>
  fc
    .array(
      fc.tuple(
        fc.oneof(
          fc.constantFrom(...names.filter((name) => name !== 'follow'), 'page', 'size', 'start'),
          anyText,
          fc.constantFrom('a[b]', '__proto__'),
        ),
        fc.oneof(
          anyText,
          fc.constantFrom('0', '-1', '1e9', '99999999999999999999', '2026-02-31', 'null', '', 'true'),
        ),
      ),
      { maxLength: 5 },
    )
    .map(queryText);

const wrongBody: Value = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.stringify({ name: value, settings: value })),
  anyText,
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom(
    '',
    '{',
    '{"name":',
    '{"__proto__":{}}',
    '['.repeat(5_000),
    `{"name":"${'x'.repeat(70_000)}"}`,
  ),
);

const wrongPath = (path: string): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant(path),
    fc.constant(`${path}/`),
    fc.constantFrom(
      '/',
      '//',
      '/..',
      '/openapi.json',
      '/problems/not_found',
      '/problems/x',
      '/limits',
      '/tokens',
    ),
    anyText.map((text) => `${path}/${encodeURIComponent(text)}`),
    fc.stringMatching(/^[!-"$->@-~]{1,30}$/).map((text) => `/${text}`),
  );

const METHODS = ['GET', 'PUT', 'DELETE', 'POST', 'HEAD', 'OPTIONS', 'PATCH'];

export const wrongRequest = (route: Route): fc.Arbitrary<Generated> =>
  fc
    .record({
      method: fc.oneof(
        { weight: 4, arbitrary: fc.constant(route.method.toUpperCase()) },
        { weight: 1, arbitrary: fc.constantFrom(...METHODS) },
      ),
      path: fc.oneof(
        { weight: 3, arbitrary: fc.constant(route.path) },
        { weight: 1, arbitrary: wrongPath(route.path) },
      ),
      query: fc.oneof(rightQuery(route), wrongQuery(Object.keys(route.query?.parameters ?? { x: 1 }))),
      headers: wrongHeaders,
      body: fc.option(fc.oneof(rightBody(route), wrongBody), { nil: undefined }),
    })
    .map(({ method, path, query, headers, body }) => ({
      method,
      path: `${path}${query}`,
      headers,
      ...(body === undefined ? {} : { body }),
    }));
