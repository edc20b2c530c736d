import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { monotonicMs } from '../../async/clock';
import { inLaterTurn } from '../../async/turns';

/**
 * How many bytes the parser gets at a time. Node would pass on everything it has read, up to 64 KiB: possibly thousands
 * of pipelined requests, all created before the first one could exert backpressure.
 */
const PIECE_BYTES = 1_024;

interface Pending {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly start: () => void;
}

/** The requests of one connection: one is being handled, those parsed along with it wait in order. */
interface Queue {
  busy: boolean;
  isNew: boolean;
  readonly waiting: Pending[];
  /** Called when the response has been flushed or the connection closed. */
  readonly done: () => void;
}

const arrivals = new WeakMap<IncomingMessage, number>();

/** When a request was complete up to its headers and first on its connection, on the monotonic clock. */
export const arrivalOf = (request: IncomingMessage): number => arrivals.get(request) ?? monotonicMs();

type Parse = (piece: Buffer) => void;

/** Backpressure: while a request is queued, nothing more is parsed, and soon nothing more is read. */
const parseInPieces = (socket: Socket, queue: Queue): void => {
  // Node's own listener, which feeds its parser.
  const [parse] = socket.listeners('data') as Parse[];
  if (parse === undefined) return;
  const mustWait = (): boolean => queue.waiting.length > 0 || socket.isPaused() || socket.destroyed;
  // On CONNECT, the server detaches the socket and may reuse its parser for another connection.
  const isAttached = (): boolean => socket.listeners('data').includes(onData);
  const onData = (chunk: Buffer): void => {
    let at = 0;
    for (; at < chunk.length && !mustWait() && isAttached(); at += PIECE_BYTES)
      parse(at === 0 && chunk.length <= PIECE_BYTES ? chunk : chunk.subarray(at, at + PIECE_BYTES));
    if (at >= chunk.length || socket.destroyed || !isAttached()) return;
    socket.pause();
    socket.unshift(chunk.subarray(at));
  };
  socket.off('data', parse);
  socket.on('data', onData);
};

/**
 * Handles the requests of a connection one at a time: the next one starts when the previous response has been flushed.
 * So a client that keeps sending without reading costs one response and a few requests. Requests still queued when the
 * connection closes are never started. And however many connections are active, no turn of the event loop starts more
 * requests than it has time for.
 */
export const inSequence = (server: Server, handle: RequestListener): RequestListener => {
  const queues = new WeakMap<Socket, Queue>();

  const start = (pending: Pending, queue: Queue): void => {
    const { request, response } = pending;
    queue.busy = true;
    arrivals.set(request, monotonicMs());
    response.on('close', queue.done); // emitted once
    // Node accepts one connection a turn, so those of clients that have left again may fill the queue before everybody
    // else. That a client has left is read after its request, in the next turn: look before any work is done for it.
    if (queue.isNew) setImmediate(pending.start);
    else pending.start();
    queue.isNew = false;
  };

  const queueOf = (socket: Socket): Queue => {
    const startNext = (): void => {
      const next = socket.destroyed ? undefined : queue.waiting.shift();
      if (next === undefined) return;
      start(next, queue);
      if (queue.waiting.length === 0) socket.resume();
    };
    const done = (): void => {
      queue.busy = queue.waiting.length > 0;
      if (queue.busy) startNext();
    };
    const queue: Queue = { busy: false, isNew: true, waiting: [], done };
    return queue;
  };

  server.on('connection', (socket) => {
    const queue = queueOf(socket);
    queues.set(socket, queue);
    parseInPieces(socket, queue);
  });

  return (request, response) => {
    const queue = queues.get(request.socket);
    if (queue === undefined) return;
    const begin = (): void => {
      if (request.socket.writable) handle(request, response);
    };
    const pending = { request, response, start: () => inLaterTurn(begin) };
    if (queue.busy) queue.waiting.push(pending);
    else start(pending, queue);
  };
};
