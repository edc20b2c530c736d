import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { httpProblems, type HttpProblemCode } from '../problems';
import { inSequence } from './request/pipelining';
import { securityHeaders } from './response/security-headers';
import { PROBLEM_TYPE, problemBody, problemHeaders } from './response/problem-body';

/** How long to wait on a connection, in milliseconds. */
export interface Timeouts {
  /** For all headers, even on a connection that has not sent anything yet. */
  readonly headersMs: number;
  /** For the whole request. */
  readonly requestMs: number;
  /** For the next request. */
  readonly keepAliveMs: number;
  /** For any activity on the socket: a client that does not read its response causes none. */
  readonly silenceMs: number;
}

const TIMEOUTS: Timeouts = { headersMs: 10_000, requestMs: 20_000, keepAliveMs: 30_000, silenceMs: 60_000 };
const MAX_HEADER_BYTES = 16_384;
const IDLE_CHECK_MS = 50;

interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly traceHeader: string;
  readonly publicUrl: string;
  readonly timeouts?: Timeouts;
  /** Called for a request that could not be parsed: no other log line has its trace id. */
  readonly onRefused?: (code: HttpProblemCode, traceId: string) => void;
  /** Called if a connection could not be accepted. It affects no others. */
  readonly onError?: (error: Error) => void;
  /** More connections than this are closed at once. */
  readonly maxConnections: number;
}

const codeFor = (error: NodeJS.ErrnoException): HttpProblemCode => {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  if (error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return 'body_too_large';
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_too_slow' : 'malformed_request';
};

/** Set if the request was counted before the rest of it was refused. */
const rateLimitHeaders = (response: ServerResponse | undefined): Record<string, string> =>
  Object.fromEntries(
    ['RateLimit-Policy', 'RateLimit'].flatMap((name) => {
      const value = response?.getHeader(name);
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );

/** Requests that cannot be parsed never reach the API, so the problem is written straight to the socket. */
const refuse = (
  socket: Duplex,
  code: HttpProblemCode,
  options: ListenerOptions,
  response?: ServerResponse,
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
    ...rateLimitHeaders(response),
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': String(Buffer.byteLength(body)),
    [traceHeader]: traceId,
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  // Otherwise the rest of a slow request could still arrive, and be processed, after the refusal.
  if (code === 'request_too_slow') socket.once('finish', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${title.replace(/\.$/, '')}\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
};

/** The response that this socket still owes or is sending, from Node's internals. */
const pendingResponse = (socket: Duplex): ServerResponse | undefined =>
  (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;

/** Complete requests that came before the bad one get their own responses first. */
const refuseInTurn = (socket: Duplex, code: HttpProblemCode, options: ListenerOptions): void => {
  const response = pendingResponse(socket);
  if (response?.req.complete === true) response.once('close', () => refuseInTurn(socket, code, options));
  else if (response?.headersSent === true) socket.destroy();
  else refuse(socket, code, options, response);
};

const openConnections = (server: Server): ReadonlySet<Socket> => {
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return open;
};

/**
 * Calls what makes Node close idle connections. Node takes a response that has ended for sent, but much of it may still
 * wait for a slow client: such responses count as not ended meanwhile.
 */
const sparingUnsent = (open: ReadonlySet<Socket>, closeIdle: () => void): void => {
  const unsent = [...open]
    .flatMap((socket) => pendingResponse(socket) ?? [])
    .filter(({ finished }) => finished);
  for (const response of unsent) response.finished = false;
  closeIdle();
  for (const response of unsent) response.finished = true;
};

const closeServer = (server: Server, open: ReadonlySet<Socket>, withinMs: number): Promise<void> =>
  new Promise((resolve) => {
    const forceClose = setTimeout(() => server.closeAllConnections(), withinMs);
    const closeIdle = (): void => {
      sparingUnsent(open, () => server.closeIdleConnections());
      // To Node, connections on which nothing has arrived yet are not idle; but browsers and balancers open some in
      // advance, and a shutdown need not wait for them.
      for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    };
    // Connections that are busy now become idle after their response: check again.
    const checking = setInterval(closeIdle, IDLE_CHECK_MS);
    const closed = (): void => {
      clearTimeout(forceClose);
      clearInterval(checking);
      resolve();
    };
    sparingUnsent(open, () => server.close(closed));
    closeIdle();
  });

const listen = (server: Server, options: ListenerOptions): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    const { host, port } = options;
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      server.on('error', (error) => options.onError?.(error));
      resolve(server.address() as AddressInfo);
    });
  });

export const openListener = async (handle: RequestListener, options: ListenerOptions) => {
  const { headersMs, requestMs, keepAliveMs, silenceMs } = options.timeouts ?? TIMEOUTS;
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: headersMs / 10,
    requireHostHeader: false,
  });
  const handleInTurn = inSequence(server, handle);
  server.on('request', handleInTurn);
  server.setTimeout(silenceMs);
  server.maxConnections = options.maxConnections;
  server.on('drop', () => options.onError?.(new Error(`${options.maxConnections} connections are open.`)));
  const sockets = openConnections(server);
  const refused = new WeakSet<Duplex>();
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET') socket.destroy();
    else if (!refused.has(socket)) refuseInTurn(socket, codeFor(error), options);
    else if (socket.writableFinished) socket.destroy();
    refused.add(socket);
  });
  server.on('connect', (_, socket) => {
    // The server has detached this socket: nothing else handles its errors or closes it.
    socket.on('error', () => socket.destroy());
    socket.once('finish', () => socket.destroy());
    // Its parser may be reused for another connection from here on.
    socket.removeAllListeners('data');
    refuse(socket, 'malformed_request', options);
  });
  server.on('checkExpectation', handleInTurn);
  const { port } = await listen(server, options);
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;

  return {
    url: `http://${host}:${port}`,
    /** Stops accepting connections, lets requests in flight finish within this time, then closes all that remain. */
    close: (withinMs: number) => closeServer(server, sockets, withinMs),
  };
};

export type Listener = Awaited<ReturnType<typeof openListener>>;
