import { Worker } from 'node:worker_threads';
import { monotonicMs } from '../clock';
import { fault } from '../fault';

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

  const settle = (answer: Answer): void => {
    const waiter = waiting.get(answer.id);
    if (waiter === undefined) return;
    waiting.delete(answer.id);
    clearTimeout(waiter.timer);
    if ('value' in answer) waiter.resolve(answer.value as never);
    else waiter.reject(fault(answer.fault.code, answer.fault.message, answer.fault.more));
  };

  const start = (): Worker => {
    const started = new Worker(file, { workerData: data });
    let died = 'The writing thread ended.';
    started.on('message', settle);
    started.on('error', (error) => (died = `The writing thread died: ${error.message}`));
    started.on('exit', () => {
      if (worker === started) worker = undefined;
      for (const id of waiting.keys()) settle({ id, fault: { code: 'no_answer', message: died } });
    });
    return started;
  };

  return {
    call: <T>(request: unknown, withinMs: number) =>
      new Promise<T>((resolve, reject) => {
        if (closing) return reject(fault('expired', 'The writing thread is closed.'));
        worker ??= start();
        const id = nextId++;
        const late = `The writing thread did not answer within ${withinMs} ms.`;
        const timer = setTimeout(() => settle({ id, fault: { code: 'no_answer', message: late } }), withinMs);
        waiting.set(id, { resolve, reject, timer });
        worker.postMessage({
          id,
          request,
          notAfter: monotonicMs() + Math.max(0, withinMs - TELLING_MS),
        } satisfies Question);
      }),

    close: async () => {
      closing = true;
      if (worker === undefined) return;
      const ended = new Promise((resolve) => worker?.once('exit', resolve));
      worker.postMessage('close');
      await ended;
    },
  };
};
