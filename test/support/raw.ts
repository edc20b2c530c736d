import { connect, type Socket } from 'node:net';
import { mustBeDescribed } from './described';
import type { ApiResponse } from './http';

export interface Conversation {
  readonly socket: Socket;
  received(): string;
  /** Resolves when the server has closed the connection, or when it broke. */
  readonly closed: Promise<void>;
}

/** With `allowHalfOpen` the client keeps sending after the server has half-closed the connection. */
export const converse = (url: string, { allowHalfOpen = false } = {}): Conversation => {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return { socket, received: () => Buffer.concat(chunks).toString(), closed };
};

const parsed = (text: string): { answer: ApiResponse; rest: string } => {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) throw new Error(`This is no HTTP answer: ${JSON.stringify(text.slice(0, 200))}`);
  const [line = '', ...fields] = text.slice(0, end).split('\r\n');
  const headers = new Headers(
    fields.map((field): [string, string] => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon), field.slice(colon + 1).trim()];
    }),
  );
  const isChunked = headers.get('transfer-encoding') === 'chunked';
  const bytes = Buffer.from(text.slice(end + 4).replace(isChunked ? /^0\r\n\r\n/ : '', ''));
  const length = Number(headers.get('content-length') ?? 0);
  const body = bytes.subarray(0, length).toString();
  const isJson = (headers.get('content-type') ?? '').includes('json') && body !== '';
  return {
    answer: {
      status: Number(/^HTTP\/1\.[01] ([0-9]{3}) /.exec(`${line} `)?.[1]),
      headers,
      text: body,
      json: isJson ? JSON.parse(body) : undefined,
    },
    rest: bytes.subarray(length).toString(),
  };
};

export const answersIn = (text: string): readonly ApiResponse[] => {
  if (text === '') return [];
  const { answer, rest } = parsed(text);
  return [answer, ...answersIn(rest)];
};

const requestLines = (sent: string): readonly { readonly method: string; readonly path: string }[] =>
  [...sent.matchAll(/(?:^|\n|[}\]])([A-Z]+) (?:[a-z]+:\/\/[^ /]+)?(\/[^ ?]*)[^ ]* HTTP\/1\.[01]\r\n/g)].map(
    ([, method = '', path = '']) => ({ method, path }),
  );

/** What Node's HTTP server refuses by itself is not in the document. */
export const isOfNode = ({ text, headers }: ApiResponse): boolean =>
  text === '' && !headers.has('x-content-type-options');

/** Sends raw bytes, waits until the server closes the connection, and returns its responses. */
export const sendRaw = async (url: string, ...parts: readonly (string | Buffer)[]) => {
  const { socket, received, closed } = converse(url);
  for (const part of parts) socket.write(part);
  await closed;
  const answers = answersIn(received());
  const asked = requestLines(Buffer.concat(parts.map((part) => Buffer.from(part))).toString('latin1'));
  answers.forEach((answer, at) => {
    if (!isOfNode(answer)) mustBeDescribed(answer, { url, ...asked[at] });
  });
  return [...answers];
};
