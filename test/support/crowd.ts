import { Agent, request } from 'node:http';
import { codeOf } from '../../src/fault';
import { checked, type ApiResponse, type AskOptions } from './http';

/**
 * Many requests from many addresses over keep-alive connections: what a crowd of clients would send, and fast. Each
 * response is checked against the OpenAPI document like any other.
 */
export interface Crowd {
  ask(path: string, asking?: AskOptions): Promise<ApiResponse>;
  close(): void;
}

/** Only on Linux all of 127/8 is this machine. Elsewhere all requests come from one address. */
const ADDRESSES = process.platform === 'linux' ? 100 : 1;

const headersOf = (raw: readonly string[]): Headers => {
  const headers = new Headers();
  for (let at = 0; at < raw.length; at += 2) headers.append(raw[at] ?? '', raw[at + 1] ?? '');
  return headers;
};

const bodyOf = (body: unknown): string | Buffer | undefined =>
  body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);

export const crowdAt = (url: string): Crowd => {
  const { hostname, port } = new URL(url);
  const agents = Array.from(
    { length: ADDRESSES },
    (_, at) =>
      new Agent({
        keepAlive: true,
        maxSockets: 4,
        ...(ADDRESSES === 1 ? {} : { localAddress: `127.0.0.${2 + at}` }),
      }),
  );
  let next = 0;

  const send = (path: string, asking: AskOptions) =>
    new Promise<Omit<ApiResponse, 'json'>>((resolve, reject) => {
      const { method = 'GET', key, headers = {}, body } = asking;
      const content = bodyOf(body);
      const sent = request({
        hostname,
        port,
        path,
        method,
        agent: agents[next++ % ADDRESSES],
        headers: {
          ...(key === undefined ? {} : { 'SVC-API-KEY': key }),
          ...(content === undefined
            ? {}
            : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(content) }),
          ...headers,
        },
      });
      // A busy test may use a connection that the server has just closed for being idle: then nothing was processed.
      sent.once('error', (error) =>
        sent.reusedSocket && codeOf(error) === 'ECONNRESET' ? resolve(send(path, asking)) : reject(error),
      );
      sent.once('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: headersOf(response.rawHeaders),
            text: Buffer.concat(chunks).toString(),
          }),
        );
      });
      sent.end(content);
    });

  return {
    ask: async (path, asking = {}) => {
      const seen = await send(path, asking);
      return checked(seen, { url, method: asking.method, path: path.split('?')[0] });
    },
    close: () => {
      for (const agent of agents) agent.destroy();
    },
  };
};
