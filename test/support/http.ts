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
  /** An object is sent as JSON; text as it is, with the JSON content type unless the headers say otherwise. */
  readonly body?: unknown;
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

export const ask = (
  url: string,
  { method = 'GET', key, headers = {}, body }: AskOptions = {},
): Promise<ApiResponse> =>
  received(url, {
    method,
    headers: {
      ...(key === undefined ? {} : { 'SVC-API-KEY': key }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
