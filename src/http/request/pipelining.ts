import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { inLaterTurn } from '../../turns';

/**
 * How many bytes the parser gets at a time. Node would give it all that was read, up to 64 KiB, which may hold thousands
 * of requests: they would all be made before the first of them could be waited for.
 */
const PIECE_BYTES = 1_024;

interface Pending {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The requests of one connection: one is answered, those that were parsed together with it wait in order. */
interface Queue {
  busy: boolean;
  readonly waiting: Pending[];
  /** To be called when the answer is flushed or the connection gone. */
  readonly done: () => void;
}

type Parse = (piece: Buffer) => void;

/** While a request waits for its turn, nothing more is parsed, and soon nothing more is read. */
const parseInPieces = (socket: Socket, queue: Queue): void => {
  // Node's own listener, which hands the bytes to its parser.
  const [parse] = socket.listeners('data') as Parse[];
  if (parse === undefined) return;
  const mustWait = (): boolean => queue.waiting.length > 0 || socket.isPaused() || socket.destroyed;
  // With a CONNECT the server lets go of the socket, and its parser may soon be another connection's.
  const isOurs = (): boolean => socket.listeners('data').includes(take);
  const take = (chunk: Buffer): void => {
    let at = 0;
    for (; at < chunk.length && !mustWait() && isOurs(); at += PIECE_BYTES)
      parse(at === 0 && chunk.length <= PIECE_BYTES ? chunk : chunk.subarray(at, at + PIECE_BYTES));
    if (at >= chunk.length || socket.destroyed || !isOurs()) return;
    socket.pause();
    socket.unshift(chunk.subarray(at));
  };
  socket.off('data', parse);
  socket.on('data', take);
};

/**
 * Handles the requests of a connection one after the other: the next one begins when the answer before it is flushed. So
 * a client that sends ever more without reading costs one answer and a few requests. Those that still wait when their
 * connection is gone are never begun. And however many connections ask at once, no turn of the event loop begins more
 * requests than it has time for.
 */
export const inSequence = (server: Server, handle: RequestListener): RequestListener => {
  const queues = new WeakMap<Socket, Queue>();

  const begin = ({ request, response }: Pending, queue: Queue): void => {
    queue.busy = true;
    response.on('close', queue.done); // it comes once
    inLaterTurn(() => {
      if (!request.socket.destroyed) handle(request, response);
    });
  };

  const queueOf = (socket: Socket): Queue => {
    const beginNext = (): void => {
      const next = socket.destroyed ? undefined : queue.waiting.shift();
      if (next === undefined) return;
      begin(next, queue);
      if (queue.waiting.length === 0) socket.resume();
    };
    const done = (): void => {
      queue.busy = queue.waiting.length > 0;
      if (queue.busy) beginNext();
    };
    const queue: Queue = { busy: false, waiting: [], done };
    return queue;
  };

  server.on('connection', (socket) => {
    const queue = queueOf(socket);
    queues.set(socket, queue);
    parseInPieces(socket, queue);
  });

  return (request, response) => {
    const queue = queues.get(request.socket);
    if (queue?.busy === true) queue.waiting.push({ request, response });
    else if (queue !== undefined) begin({ request, response }, queue);
  };
};
