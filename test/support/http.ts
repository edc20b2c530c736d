import { mustBeDescribed, type AskedFor, type Seen } from './described';

/** A plain HTTP client for tests: no retries, no magic. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body, or undefined when there is none. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of every shape
  readonly json: any;
}

export interface AskOptions {
  readonly method?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON; text and bytes as they are, as JSON, too, unless the headers say otherwise. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** A response that was received, checked against the OpenAPI document. */
export const checked = (seen: Seen, asked: AskedFor): ApiResponse => {
  mustBeDescribed(seen, asked);
  const isJson = /[/+]json/.test(seen.headers.get('content-type') ?? '') && seen.text !== '';
  return { ...seen, json: isJson ? JSON.parse(seen.text) : undefined };
};

export const received = async (url: string, init: RequestInit = {}): Promise<ApiResponse> => {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  const { status, headers } = response;
  return checked(
    { status, headers, text: await response.text() },
    { url, method: init.method, path: new URL(url).pathname },
  );
};

const isSentAsItIs = (body: unknown): body is string | Buffer<ArrayBuffer> =>
  typeof body === 'string' || Buffer.isBuffer(body);

/** Changes the name of the Tenant. */
export const rename = (
  { url }: { readonly url: string },
  key: string,
  name: string,
  more: AskOptions = {},
): Promise<ApiResponse> => ask(`${url}/tenants/self`, { method: 'PUT', key, body: { name }, ...more });

export const ask = (
  url: string,
  { method = 'GET', key, headers = {}, body, ...more }: AskOptions = {},
): Promise<ApiResponse> =>
  received(url, {
    ...more,
    method,
    headers: {
      ...(key === undefined ? {} : { 'SVC-API-KEY': key }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isSentAsItIs(body) ? body : JSON.stringify(body) }),
  });
