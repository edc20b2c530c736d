import addFormats from 'ajv-formats';
import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import { routes } from '../../src/http/api';
import { headerNames } from '../../src/http/context';
import { openApiDocument } from '../../src/http/openapi/document';
import { httpProblems, isHttpProblemCode } from '../../src/problems';

/**
 * Checks every response that a test gets from the API against the OpenAPI document: an unknown status, a missing or
 * unknown header or a body that does not match is a failure, whatever else the test looks at.
 */
export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

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
  readonly description?: string;
  readonly headers: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, { readonly schema: Json; readonly 'x-line-schema'?: Json }>>;
}
interface Operation {
  readonly responses: Readonly<Record<string, Described>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly responses: { readonly Problem: Described };
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

/** Pages have scripts and styles of their own. */
const PAGE_POLICY = /^default-src 'none'; (?!.*unsafe).*frame-ancestors 'none';/;

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
  const made = openApiDocument(routes, { headers, publicUrl: '', version: '0' });
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

const pathOf = (path: string): string => (path.length > 2 && path.endsWith('/') ? path.slice(0, -1) : path);

const operationAt = (document: Document, method: string, path: string): Operation | undefined => {
  const template = pathOf(path)
    .replace(/^\/events\/[^/]+/, '/events/{id}')
    .replace(/^\/applications\/(?!key$)[^/]+/, '/applications/{id}')
    .replace(/^\/applications\/\{id\}\/keys/, '/applications/{application_id}/keys')
    .replace(/^(\/applications\/\{application_id\}\/keys)\/[^/]+/, '$1/{key_id}');
  return document.paths[template]?.[method.toLowerCase()];
};

/** A failure here, though described for clients: a declared path exists and has its methods, and 500 is a bug. */
const isNeverGiven = (status: number, path: string, isDeclared: boolean): boolean =>
  status === 500 ||
  (isDeclared && (status === 404 || status === 405) && !/^\/(events|applications|keys)\//.test(path));

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
    headers.get(name) === value || (isPage && PAGE_POLICY.test(headers.get(name) ?? ''))
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

const required = (schema: Json = {}): Header => ({ required: true, schema });
const optional: Header = { required: false, schema: {} };

/** OPTIONS of a declared path. */
const OPTIONS = (trace: string): Described => ({
  headers: {
    [trace]: required(),
    Allow: required({ type: 'string', pattern: 'OPTIONS' }),
    RateLimit: optional,
    'RateLimit-Policy': optional,
  },
});

/** What needs no key is not part of the document. */
const PAGES = /^\/(?:docs(?:\/[^/]+)?|openapi\.json|problems\/[a-z_]+)?$/;

const PAGE = (trace: string): Described => ({
  headers: {
    [trace]: required(),
    'Cache-Control': required({ const: 'public, max-age=3600' }),
    Location: optional,
    RateLimit: optional,
    'RateLimit-Policy': optional,
  },
  content: Object.fromEntries(
    ['text/html', 'text/plain', 'text/css', 'text/javascript', 'application/json'].map((type) => [
      type,
      { schema: {} },
    ]),
  ),
});

/** The header that every problem of a status has. */
const PROBLEM_HEADERS: Readonly<Record<number, string>> = {
  401: 'WWW-Authenticate',
  405: 'Allow',
  412: 'ETag',
  429: 'Retry-After',
};

const COMMON_MEMBERS = new Set(['type', 'title', 'status', 'detail', 'instance', 'code', 'trace_id']);
/** Only after a start. */
const OPTIONAL_MEMBERS = new Set(['progress']);

/** What might be a key in it is masked. */
const isEchoed = (path: string, instance: unknown): boolean =>
  path !== '*' && !String(instance).includes('_***');

const problemFaults = ({ status, headers, text }: Seen, path: string, trace: string): readonly string[] => {
  const name = PROBLEM_HEADERS[status];
  const missing =
    name === undefined || headers.has(name) ? [] : [`the header ${name} is missing with ${status}`];
  if (text === '') return missing;
  const body = JSON.parse(text) as Readonly<Record<string, unknown>>;
  const code = String(body['code']);
  if (!isHttpProblemCode(code)) return [...missing, `${code} is no code`];
  const { status: stated, members } = httpProblems[code];
  const own = Object.keys(body).filter((member) => !COMMON_MEMBERS.has(member));
  const lacking = members.filter((member) => !own.includes(member) && !OPTIONAL_MEMBERS.has(member));
  const isOwn = own.every((member) => members.includes(member));
  const expected = { status, type: `/problems/${code}`, trace_id: headers.get(trace), instance: path };
  return [
    ...missing,
    ...(stated === status ? [] : [`${code} has the status ${stated}`]),
    ...(isOwn && lacking.length === 0 ? [] : [`${code} has the members ${own.join()}`]),
    ...Object.entries(expected)
      .filter(([member, value]) => !String(body[member]).endsWith(String(value)))
      .filter(([member]) => member !== 'instance' || isEchoed(path, body['instance']))
      .map(([member]) => `the member ${member} is ${String(body[member])}`),
  ];
};

/** Any operation may answer with these. */
const ANYWHERE = new Set([400, 401, 405, 413, 415, 429]);

/** An operation names its codes. */
const codeFaults = ({ status, text }: Seen, path: string, operation: Operation): readonly string[] => {
  // A path as it is declared is nobody's.
  if (status >= 500 || ANYWHERE.has(status) || text === '' || path.includes('/:')) return [];
  const { code } = JSON.parse(text) as { readonly code: string };
  const codes = operation.responses[status]?.description?.split(', ') ?? [];
  return codes.includes(code) || 'content' in (operation.responses[status] ?? {})
    ? []
    : [`the operation does not name ${code}`];
};

/** A reference has no headers of its own. */
const withoutBody = (answer: Partial<Described> | undefined): Described | undefined =>
  answer?.headers && { headers: answer.headers };

export const faultsIn = (seen: Seen, { url, method = 'GET', path = '*' }: AskedFor): readonly string[] => {
  const origin = originOf(url);
  const prefix = addresses.has(origin) ? addresses.get(origin) : 'SVC';
  if (prefix === undefined) return [];
  const { document, headers, faultOf } = describedWith(prefix);
  const { status } = seen;
  const operation = operationAt(document, method === 'HEAD' ? 'get' : method, path);
  const answer = (): Described | undefined => {
    if (isNeverGiven(status, path, operation !== undefined)) return undefined;
    // Proxies that ask about a key want no body.
    if (status >= 400)
      return (
        (seen.text === '' ? withoutBody(operation?.responses[status]) : undefined) ??
        document.components.responses.Problem
      );
    if (method === 'OPTIONS' && status === 204) return OPTIONS(headers.traceId);
    return PAGES.test(pathOf(path)) ? PAGE(headers.traceId) : operation?.responses[status];
  };
  const expected = answer();
  if (expected === undefined) return [`the status ${status} is not described`];
  return [
    ...headerFaults(seen, expected.headers, faultOf),
    ...bodyFaults(seen, expected.content, method === 'HEAD', faultOf),
    ...(status >= 400 ? problemFaults(seen, path, headers.traceId) : []),
    ...(status >= 400 && operation !== undefined ? codeFaults(seen, path, operation) : []),
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
