import { request, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';

export interface PlainResponse {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** With these headers only, also `Host`: `fetch` adds others. Its response is not compared with the OpenAPI document. */
export const plainRequest = (
  url: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
  body = '',
) =>
  new Promise<PlainResponse>((resolve, reject) => {
    request(url, { method, headers }, (response) => {
      const { statusCode: status, headers: received } = response;
      text(response).then((read) => resolve({ status, headers: received, text: read }), reject);
    })
      .once('error', reject)
      .end(body);
  });
