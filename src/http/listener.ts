import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { fault } from '../fault';
import { httpProblems, type HttpProblemCode } from '../problems';
import { inSequence } from './request/pipelining';
import { securityHeaders } from './answer/security-headers';
import { PROBLEM_TYPE, problemBody, problemHeaders } from './answer/problem-body';

/** How long a connection is waited for, in milliseconds. */
export interface Timeouts {
  /** For all the headers, also on a connection that has said nothing yet. */
  readonly headersMs: number;
  /** For the whole request. */
  readonly requestMs: number;
  /** For the next request. */
  readonly keepAliveMs: number;
  /** For any sign of life: a client that does not read its answer gives none. */
  readonly silenceMs: number;
}

const TIMEOUTS: Timeouts = { headersMs: 10_000, requestMs: 20_000, keepAliveMs: 30_000, silenceMs: 60_000 };
const HEADER_BYTES = 16_384;
const CHECK_MS = 1_000;

const IDLE_CHECK_MS = 50;

export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly traceHeader: string;
  readonly publicUrl: string;
  readonly timeouts?: Timeouts;
  /** A request that never became one: reported here, because no other log line has its trace id. */
  readonly onRefused?: (code: HttpProblemCode, traceId: string) => void;
}

/** A server that is listening. */
export interface Listener {
  readonly url: string;
  /** Takes no more connections, lets what is under way finish within this time, then cuts what is left. */
  close(withinMs: number): Promise<void>;
}

const codeFor = (error: NodeJS.ErrnoException): HttpProblemCode => {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  if (error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large';
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_too_slow' : 'malformed_request';
};

/** A request that was counted before the rest of it was refused says so in this answer, too. */
const countedFields = (answer: ServerResponse | undefined): Record<string, string> =>
  Object.fromEntries(
    ['RateLimit-Policy', 'RateLimit'].flatMap((name) => {
      const value = answer?.getHeader(name);
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );

/** What the HTTP parser refuses never reaches the steps of the API: the same body is written on the socket. */
const refuse = (
  socket: Duplex,
  code: HttpProblemCode,
  options: ListenerOptions,
  answer?: ServerResponse,
): void => {
  if (!socket.writable) return void socket.destroy();
  const { traceHeader, publicUrl } = options;
  const traceId = randomUUID();
  options.onRefused?.(code, traceId);
  const { status, title } = httpProblems[code];
  const body = JSON.stringify(problemBody({ code, instance: '/', traceId, publicUrl }));
  const headers = {
    ...securityHeaders,
    ...problemHeaders(code),
    ...countedFields(answer),
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': String(Buffer.byteLength(body)),
    [traceHeader]: traceId,
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  // A slow request must not go on arriving, and be carried out, after it was refused.
  if (code === 'request_too_slow') socket.once('finish', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${title.replace(/\.$/, '')}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
};

/** The answer that this socket owes or is sending, as Node keeps it. */
const answerUnderWay = (socket: Duplex): ServerResponse | undefined =>
  (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;

/** Refuses what came after whole requests only once those are answered: theirs is not this refusal. */
const refuseInTurn = (socket: Duplex, code: HttpProblemCode, options: ListenerOptions): void => {
  const answer = answerUnderWay(socket);
  if (answer?.req.complete === true) answer.once('close', () => refuseInTurn(socket, code, options));
  else if (answer?.headersSent === true) socket.destroy();
  else refuse(socket, code, options, answer);
};

/** Why one cannot listen there, in words that name the settings. */
const listenFault = (error: NodeJS.ErrnoException, { host, port }: ListenerOptions): Error => {
  const { code = '' } = error;
  if (code === 'EADDRINUSE')
    return fault(
      'port_taken',
      `Port ${port} on ${host} is taken. Stop what uses it, or choose another PORT and OPS_PORT.`,
    );
  if (code === 'EACCES')
    return fault('port_refused', `This user may not use port ${port}. Choose another PORT and OPS_PORT.`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return fault(
      'host_unknown',
      `${host} is not an address of this machine. Choose another HOST and OPS_HOST.`,
    );
  return error;
};

const listen = (server: Server, options: ListenerOptions): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    const { host, port } = options;
    // It stays: an accept that fails later, as without a free file descriptor, concerns that connection only.
    server.on('error', (error) => reject(listenFault(error, options)));
    server.listen({ host, port }, () => resolve(server.address() as AddressInfo));
  });

export const openListener = async (handle: RequestListener, options: ListenerOptions): Promise<Listener> => {
  const { headersMs, requestMs, keepAliveMs, silenceMs } = options.timeouts ?? TIMEOUTS;
  const server = createServer({
    maxHeaderSize: HEADER_BYTES,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersMs / 4),
    requireHostHeader: false,
  });
  const handleInTurn = inSequence(server, handle);
  server.on('request', handleInTurn);
  server.setTimeout(silenceMs);
  const refused = new WeakSet<Duplex>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET') socket.destroy();
    else if (!refused.has(socket)) refuseInTurn(socket, codeFor(error), options);
    else if (socket.writableFinished) socket.destroy();
    refused.add(socket);
  });
  server.on('connect', (_, socket) => {
    // The server has let go of this socket: nobody else catches its errors or closes it.
    socket.on('error', () => socket.destroy());
    socket.once('finish', () => socket.destroy());
    // The parser that this socket's bytes went to is another connection's from here on.
    socket.removeAllListeners('data');
    refuse(socket, 'malformed_request', options);
  });
  server.on('checkExpectation', handleInTurn);
  const { port } = await listen(server, options);
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;

  return {
    url: `http://${host}:${port}`,
    close: (withinMs) =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), withinMs);
        // A connection that was busy when this began is kept alive after its answer: look again.
        const idle = setInterval(() => server.closeIdleConnections(), IDLE_CHECK_MS);
        server.close(() => {
          clearTimeout(cut);
          clearInterval(idle);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
};
