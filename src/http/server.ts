import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { TIMES } from '../times';

const TIMEOUTS = {
  headersTimeout: TIMES.headersMs,
  requestTimeout: TIMES.requestMs,
  keepAliveTimeout: TIMES.keepAliveMs,
  connectionsCheckingInterval: TIMES.lateConnectionsMs,
};

/** Answers a request, possibly later. It never rejects. */
export type Answering = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

/** A connection with more unanswered requests than this is closed. */
const MAX_UNANSWERED = 32;

interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  /** More connections than this are closed at once. */
  readonly maxConnections: number;
  /** Called if a connection could not be accepted. It affects no others. */
  readonly onError: (error: Error) => void;
}

/** Runs what it is given one by one, and lets the event loop handle everything else in between. */
const turnByTurn = () => {
  const waiting: (() => void)[] = [];
  const runNext = (): void => {
    waiting[0]?.();
    waiting.shift();
    if (waiting.length > 0) setImmediate(runNext);
  };
  return (work: () => void): void => {
    if (waiting.push(work) === 1) setImmediate(runNext);
  };
};

/**
 * A server that handles the requests of a connection one after the other, and others in between: Node would start them
 * all, and never tell the later responses that their client has left.
 */
const sequentialServer = (handle: Answering) => {
  const server = createServer(TIMEOUTS);
  server.setTimeout(TIMES.silenceMs);
  const inTurn = turnByTurn();
  /** What starts the unanswered requests of each open connection. The first of them has been started. */
  const connections = new Map<Socket, (() => void)[]>();

  server.on('connection', (socket) => {
    connections.set(socket, []);
    socket.once('close', () => connections.delete(socket));
  });

  server.on('request', (request, response) => {
    const { socket } = request;
    const unanswered = connections.get(socket) ?? [];
    const startNext = (): void => {
      if (socket.writable) unanswered[0]?.();
    };
    const answered = (): void => {
      unanswered.shift();
      if (unanswered.length > 0) inTurn(startNext);
      else if (!server.listening) socket.destroySoon();
    };
    const start = (): void => {
      void handle(request, response);
      response.once('close', answered); // once the last byte is on its way
    };
    if (unanswered.push(start) > MAX_UNANSWERED) socket.destroy();
    else if (unanswered.length === 1) start();
  });

  // Node's own, which `close` calls, would take a response for sent while most of it still waits for a slow client.
  server.closeIdleConnections = () => {
    for (const [socket, unanswered] of connections) if (unanswered.length === 0) socket.destroy();
  };
  return server;
};

export const openListener = async (handle: Answering, options: ListenerOptions) => {
  const { host, port, maxConnections, onError } = options;
  const server = sequentialServer(handle);
  server.maxConnections = maxConnections;
  server.on('drop', () => onError(new Error(`${maxConnections} connections are open.`)));
  server.listen({ host, port });
  await once(server, 'listening');
  server.on('error', onError);
  const { port: bound } = server.address() as AddressInfo;

  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    /** Stops accepting connections, lets requests in flight finish within this time, then closes all that remain. */
    close: (withinMs: number) =>
      new Promise<void>((resolve) => {
        const grace = setTimeout(() => server.closeAllConnections(), withinMs);
        server.close(() => {
          clearTimeout(grace);
          resolve();
        });
      }),
  };
};

export type Listener = Awaited<ReturnType<typeof openListener>>;
