import { Worker } from 'node:worker_threads';
import { monotonicMs } from '../clock';
import { fault, reportedFault } from '../fault';
import { beginWrite, endWrite, someoneWaits, whenWritable } from './suspension';

/**
 * A thread that owns the writing connections of some SQLite files, so that a slow disk or a busy lock never stops the
 * thread that answers HTTP. Its inside is made with `answerInThread`.
 */
export interface Thread {
  /**
   * Sends one request and waits for its answer. Rejects with the answer's fault, or with `expired` (certainly not
   * done), or with `no_answer` (perhaps done) when the time is up or the thread died.
   */
  call<T>(request: unknown, withinMs: number): Promise<T>;
  /** Lets the thread finish what it has, and ends it. */
  close(): Promise<void>;
}

export interface Question {
  readonly id: number;
  readonly request: unknown;
  /** On the monotonic clock: not begun by then, it is not done at all. */
  readonly notAfter: number;
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number;
      readonly fault: { code: string; message: string; more?: Record<string, unknown> };
    };

/** So long before its caller gives up a request is not begun any more: so the caller hears that it was not done. */
const TELLING_MS = 50;

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export const startThread = (file: string, data: unknown): Thread => {
  const waiting = new Map<number, Waiting>();
  let nextId = 1;
  let closing = false;
  let worker: Worker | undefined;
  /** Also those that their callers no longer wait for: the thread may still be writing them. */
  let unanswered = 0;

  const settle = (answer: Answer): void => {
    const waiter = waiting.get(answer.id);
    if (waiter === undefined) return;
    waiting.delete(answer.id);
    clearTimeout(waiter.timer);
    if ('value' in answer) waiter.resolve(answer.value as never);
    else waiter.reject(reportedFault(answer.fault.code, answer.fault.message, answer.fault.more));
  };

  const start = (): Worker => {
    const started = new Worker(file, { workerData: data });
    let died = 'The writing thread ended.';
    started.on('message', (answer: Answer) => {
      endWrite();
      unanswered -= 1;
      settle(answer);
    });
    started.on('error', (error) => (died = `The writing thread died: ${error.message}`));
    started.on('exit', () => {
      if (worker === started) worker = undefined;
      endWrite(unanswered);
      unanswered = 0;
      for (const id of waiting.keys()) settle({ id, fault: { code: 'no_answer', message: died } });
    });
    return started;
  };

  const send = <T>(request: unknown, withinMs: number): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      worker ??= start();
      unanswered += 1;
      const id = nextId++;
      const late = `The writing thread did not answer within ${withinMs} ms.`;
      const timer = setTimeout(() => settle({ id, fault: { code: 'no_answer', message: late } }), withinMs);
      waiting.set(id, { resolve, reject, timer });
      worker.postMessage({
        id,
        request,
        notAfter: monotonicMs() + Math.max(0, withinMs - TELLING_MS),
      } satisfies Question);
    });

  return {
    call: async <T>(request: unknown, withinMs: number) => {
      while (!closing && (someoneWaits() || !beginWrite())) await whenWritable();
      if (closing) throw fault('expired', 'The writing thread is closed.');
      return send<T>(request, withinMs);
    },

    close: async () => {
      closing = true;
      while (worker !== undefined && !beginWrite()) await whenWritable();
      if (worker === undefined) return;
      const ended = new Promise((resolve) => worker?.once('exit', resolve));
      worker.postMessage('close');
      await ended;
      endWrite();
    },
  };
};
