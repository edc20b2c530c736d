import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { routes } from '../../src/http/api';
import { headerNames } from '../../src/configuration';
import { openApiDocument } from '../../src/http/openapi/document';
import { isProblemCode } from '../../src/problems';

/**
 * Checks every response that a test gets from the API against the OpenAPI document: an unknown status, a missing or
 * unknown header or a body that does not match is a failure, whatever else the test looks at.
 */
export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** What was requested, if that is known: raw bytes may not be a request at all. */
export interface AskedFor {
  readonly url: string;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
}

type Json = Readonly<Record<string, unknown>>;
interface Header {
  readonly required: boolean;
  readonly schema: Json;
}
interface Described {
  readonly headers: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, { readonly schema: Json; readonly 'x-line-schema'?: Json }>>;
}
interface Operation {
  readonly responses: Readonly<Record<string, Described>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Json>>;
    readonly headers: Readonly<Record<string, Header>>;
  };
}

/** The header prefix at an address, or undefined if it is not the API. */
const addresses = new Map<string, string | undefined>();
const originOf = (url: string): string => new URL(url).origin;

export const hasHeaderPrefix = (url: string, prefix: string): void =>
  void addresses.set(originOf(url), prefix);
export const isNotTheApi = (url: string): void => void addresses.set(originOf(url), undefined);

const EVERYWHERE: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
};

/** Pages have their own style, and the API reference a script. */
const PAGE =
  /^default-src 'none'; style-src 'sha256-[^' ]+'; (?:script-src 'sha256-[^' ]+'; )?frame-ancestors 'none';/;

/** What HTTP itself adds. */
const PLUMBING = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
  'vary',
  ...Object.keys(EVERYWHERE),
]);

const MILLISECONDS = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z$';

/** Clients must accept unknown members, and any form of a date; here an undescribed one is a fault. */
const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const inside = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, closed(one)]));
  if (inside['format'] === 'date-time') return { ...inside, pattern: MILLISECONDS };
  const isOpen = inside['type'] === 'object' && 'properties' in inside && !('additionalProperties' in inside);
  return isOpen ? { ...inside, additionalProperties: false } : inside;
};

/** Replaces references to shared headers by the headers. */
const withHeaders = (document: Document): Document => {
  const { headers } = document.components;
  const text = JSON.stringify(document).replaceAll(
    /\{"\$ref":"#\/components\/headers\/([^"]+)"\}/g,
    (_, name: string) => JSON.stringify(headers[name]),
  );
  return JSON.parse(text) as Document;
};

const described = (prefix: string) => {
  const headers = headerNames(prefix);
  const made = openApiDocument({ routes, headers, publicUrl: '', version: '0' });
  const document = closed(withHeaders(made as unknown as Document)) as Document;
  // The tests of the document itself check that the schemas are valid.
  const ajv = new Ajv2020({ strict: false, allErrors: true, meta: false, validateSchema: false });
  addFormats(ajv);
  const validators = new Map<Json, ValidateFunction>();
  /** References point to the named schemas. */
  const absolute = (schema: Json): Json =>
    JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"named:')) as Json;
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(absolute(schema), `named:${name}`);
  const faultOf = (schema: Json, value: unknown): string | undefined => {
    const validate = validators.get(schema) ?? ajv.compile(absolute(schema));
    validators.set(schema, validate);
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  };
  return { document, headers, faultOf };
};

const made = new Map<string, ReturnType<typeof described>>();
const describedWith = (prefix: string): ReturnType<typeof described> => {
  const found = made.get(prefix) ?? described(prefix);
  made.set(prefix, found);
  return found;
};

const operationAt = (document: Document, method: string, path: string): Operation | undefined => {
  const plain = path.length > 2 && path.endsWith('/') ? path.slice(0, -1) : path;
  const code = /^\/problems\/([a-z_]+)$/.exec(plain)?.[1] ?? '';
  const template = isProblemCode(code)
    ? '/problems/{code}'
    : plain
        .replace(/^\/events\/[^/]+$/, '/events/{id}')
        .replace(/^\/applications\/(?!key$)[^/]+/, '/applications/{id}')
        .replace(/^\/applications\/\{id\}\/keys/, '/applications/{application_id}/keys')
        .replace(/^(\/applications\/\{application_id\}\/keys)\/[^/]+/, '$1/{key_id}');
  return document.paths[template]?.[method.toLowerCase()];
};

/**
 * Responses that are described for clients but are a failure here: a declared path exists and has its methods, and 500
 * is a bug.
 */
const isNeverGiven = (status: number, path: string): boolean =>
  status === 500 || ((status === 404 || status === 405) && !/^\/(problems|events|applications)\//.test(path));

/** Responses to requests that are not described: the same for every unknown path and method. */
const elsewhere = (document: Document, status: number, text: string): Described | undefined => {
  const all = Object.values(document.paths).flatMap((path) => Object.values(path));
  const like = all.map(({ responses }) => responses[status]).find((response) => response !== undefined);
  const code = /"code":"([a-z_]+)"/.exec(text)?.[1] ?? '';
  const name = `${code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Problem`;
  const schema = document.components.schemas[name];
  if (status < 400 || status === 500 || (schema === undefined && text !== '')) return undefined;
  const { headers } = like ?? all[0]?.responses['400'] ?? { headers: {} };
  return { headers, content: { 'application/problem+json': { schema: schema ?? {} } } };
};

const headerFaults = (
  { headers }: Seen,
  known: Described['headers'],
  faultOf: (schema: Json, value: unknown) => string | undefined,
): readonly string[] => {
  const names = new Set(Object.keys(known).map((name) => name.toLowerCase()));
  const strange = [...headers.keys()].filter((name) => !names.has(name) && !PLUMBING.has(name));
  const wrong = Object.entries(known).flatMap(([name, { required, schema }]) => {
    const value = headers.get(name);
    if (value === null) return required ? [`the header ${name} is missing`] : [];
    const fault = faultOf(schema, value);
    return fault === undefined ? [] : [`the header ${name}: ${fault}`];
  });
  const isPage = headers.get('content-type')?.startsWith('text/html') === true;
  const common = Object.entries(EVERYWHERE).flatMap(([name, value]) =>
    headers.get(name) === value || (isPage && PAGE.test(headers.get(name) ?? ''))
      ? []
      : [`the header ${name} is ${headers.get(name)}`],
  );
  return [...strange.map((name) => `the header ${name} is not described`), ...wrong, ...common];
};

/** The lines of a stream; the last one states how it ended. */
const lineFaults = (
  text: string,
  schema: Json,
  faultOf: (schema: Json, value: unknown) => string | undefined,
): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => faultOf(schema, JSON.parse(line)) ?? []);

const bodyFaults = (
  { headers, text }: Seen,
  content: Described['content'],
  headersOnly: boolean,
  faultOf: (schema: Json, value: unknown) => string | undefined,
): readonly string[] => {
  if (content === undefined) return text === '' ? [] : ['there is a body'];
  const type = (headers.get('content-type') ?? '').split(';')[0] ?? '';
  const schema = content[type]?.schema;
  if (schema === undefined) return [`the content type ${type} is not described`];
  if (headersOnly) return text === '' ? [] : ['there is a body'];
  if (type === 'application/x-ndjson')
    return lineFaults(text, content[type]?.['x-line-schema'] ?? {}, faultOf);
  if (!type.endsWith('json')) return text === '' ? ['the body is missing'] : [];
  const fault = faultOf(schema, JSON.parse(text));
  return fault === undefined ? [] : [`the body: ${fault}`];
};

/** OPTIONS of a declared path. */
const OPTIONS = (trace: string): Described => ({
  headers: {
    [trace]: { required: true, schema: {} },
    Allow: { required: true, schema: { type: 'string', pattern: 'OPTIONS' } },
    RateLimit: { required: false, schema: {} },
    'RateLimit-Policy': { required: false, schema: {} },
  },
});

export const faultsIn = (seen: Seen, { url, method = 'GET', path }: AskedFor): readonly string[] => {
  const origin = originOf(url);
  const prefix = addresses.has(origin) ? addresses.get(origin) : 'SVC';
  if (prefix === undefined) return [];
  const { document, headers, faultOf } = describedWith(prefix);
  const operation =
    path === undefined ? undefined : operationAt(document, method === 'HEAD' ? 'get' : method, path);
  // The HTTP parser refuses bytes that never became a request for this path.
  const answer =
    (isNeverGiven(seen.status, path ?? '') ? undefined : operation?.responses[seen.status]) ??
    (operation === undefined ? elsewhere(document, seen.status, seen.text) : undefined) ??
    (method === 'OPTIONS' && seen.status === 204 ? OPTIONS(headers.traceId) : undefined);
  if (answer === undefined) return [`the status ${seen.status} is not described`];
  return [
    ...headerFaults(seen, answer.headers, faultOf),
    ...bodyFaults(seen, answer.content, method === 'HEAD', faultOf),
  ];
};

export const mustBeDescribed = (seen: Seen, asked: AskedFor): void => {
  const faults = faultsIn(seen, asked);
  if (faults.length === 0) return;
  const what = `${asked.method ?? 'GET'} ${asked.path ?? asked.url}`;
  throw new Error(
    `The answer to ${what} does not fit /openapi.json: ${faults.join('; ')}.\n${seen.status} ${seen.text.slice(0, 2_000)}`,
  );
};
