import { parentPort, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads';
import { monotonicMs } from '../async/clock';
import { codeOf, fault, messageOf, reportedFault } from '../fault';
import { isBusy } from './database';

/**
 * A thread that owns the writing connections of some SQLite files, so that a slow disk or a busy lock never blocks the
 * HTTP thread. `startThread` is the caller's side, `answerInThread` the thread's side.
 */
export interface Thread {
  /**
   * Sends a request and waits for the answer. Rejects with the fault in the answer, with `expired` (certainly not done),
   * or with `no_answer` (possibly done) if the time is up or the thread died.
   */
  call<T>(request: unknown, withinMs: number): Promise<T>;
  /** Ends the thread after it has finished its requests. */
  close(): Promise<void>;
}

interface QueuedRequest {
  readonly id: number;
  readonly request: unknown;
  /** On the monotonic clock. A request that has not started by then is not done at all. */
  readonly notAfter: number;
}

type Message = readonly QueuedRequest[] | 'close';

type Answer =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number;
      readonly fault: { code: string; message: string; more?: Record<string, unknown> };
    };

/** Requests that arrive together are handled together, as a group commit of at most about this many. */
const MAX_GROUP = 256;

/** A request is not started this close to its deadline, so that its caller still learns that it was not done. */
const EXPIRY_MS = 50;

interface PendingCall {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Calls waiting for an answer, by id. */
const pendingCalls = () => {
  const pending = new Map<number, PendingCall>();
  let nextId = 1;

  const settle = (answer: Answer): void => {
    const call = pending.get(answer.id);
    if (call === undefined) return;
    pending.delete(answer.id);
    clearTimeout(call.timer);
    if ('value' in answer) call.resolve(answer.value as never);
    else call.reject(reportedFault(answer.fault.code, answer.fault.message, answer.fault.more));
  };
  const fail = (id: number, message: string): void => settle({ id, fault: { code: 'no_answer', message } });

  return {
    settle,
    failAll: (message: string): void => {
      for (const id of pending.keys()) fail(id, message);
    },
    add: <T>(withinMs: number, send: (id: number) => void): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        const id = nextId++;
        const late = `The writer thread did not answer within ${withinMs} ms.`;
        pending.set(id, { resolve, reject, timer: setTimeout(() => fail(id, late), withinMs) });
        send(id);
      }),
  };
};

/** One worker, from start to exit. */
const startWorker = (file: string, data: unknown, onAnswer: () => void, onExit: () => void) => {
  const worker = new Worker(file, { workerData: data });
  const calls = pendingCalls();
  /** Including calls that have timed out, because the thread may still be writing them. */
  let unanswered = 0;
  let reason = 'The writer thread exited.';
  /** Requests of one turn of the event loop are sent together, and so written together. */
  let requests: QueuedRequest[] = [];
  const send = (): void => {
    if (requests.length > 0) worker.postMessage(requests);
    requests = [];
  };
  worker.on('message', (answers: readonly Answer[]) => {
    unanswered -= answers.length;
    answers.forEach(calls.settle);
    onAnswer();
  });
  worker.on('error', (error) => (reason = `The writer thread died: ${error.message}`));
  worker.on('exit', () => {
    unanswered = 0;
    calls.failAll(reason);
    onExit();
  });
  return {
    isIdle: () => unanswered === 0,
    call: <T>(request: unknown, withinMs: number) =>
      calls.add<T>(withinMs, (id) => {
        unanswered += 1;
        const notAfter = monotonicMs() + Math.max(0, withinMs - EXPIRY_MS);
        const count = requests.push({ id, request, notAfter });
        if (count === 1) setImmediate(send);
        else if (count === MAX_GROUP) send();
      }),
    end: async (): Promise<void> => {
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      send();
      worker.postMessage('close');
      await ended;
    },
  };
};

/**
 * The next call restarts a thread that has died, or that was ended after being idle for `idleMs` (a thread costs about
 * 10 MB).
 */
export const startThread = (
  file: string,
  data: unknown,
  { idleMs }: { readonly idleMs?: number } = {},
): Thread => {
  let closing = false;
  let worker: ReturnType<typeof startWorker> | undefined;
  let idling: NodeJS.Timeout | undefined;
  let ending: Promise<void> = Promise.resolve();

  const endIfIdle = (): void => {
    if (closing || worker?.isIdle() !== true) return;
    ending = worker.end();
    worker = undefined;
  };

  const endLater = (): void => {
    clearTimeout(idling);
    if (idleMs !== undefined) idling = setTimeout(endIfIdle, idleMs).unref();
  };

  const start = () => {
    const started = startWorker(file, data, endLater, () => {
      if (worker === started) worker = undefined;
    });
    return started;
  };

  return {
    call: async <T>(request: unknown, withinMs: number) => {
      if (closing) throw fault('expired', 'The writer thread is closed.');
      worker ??= start();
      return worker.call<T>(request, withinMs);
    },

    close: async () => {
      closing = true;
      await worker?.end();
      await ending;
    },
  };
};

const TIDY_MS = 60_000;

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

interface ThreadBody {
  /** Returns one outcome per request, in order. If it throws, that is the outcome of all. */
  answer(requests: readonly unknown[]): readonly Outcome[];
  close(): void;
  /** Called now and then, but only after requests. */
  tidy?(): void;
  readonly tidyMs?: number;
}

const toAnswer = (id: number, outcome: Outcome): Answer => {
  if ('value' in outcome) return { id, value: outcome.value };
  const { error } = outcome;
  const more = error instanceof Error && 'more' in error ? (error.more as Record<string, unknown>) : {};
  return { id, fault: { code: codeOf(error) ?? 'failed', message: messageOf(error), more } };
};

const expired = ({ id }: QueuedRequest): Answer => ({
  id,
  fault: { code: 'expired', message: 'The deadline passed before the request could start.' },
});

const NOT_ANSWERED: Outcome = { error: new Error('The request was not answered.') };

const attempt = (body: ThreadBody, requests: readonly QueuedRequest[]): readonly Outcome[] => {
  try {
    return requests.length === 0 ? [] : body.answer(requests.map(({ request }) => request));
  } catch (error) {
    return requests.map(() => ({ error }));
  }
};

/** Adds newly arrived requests, up to a full group. True: `close` was received. */
const gather = (port: MessagePort, group: QueuedRequest[]): boolean => {
  while (group.length < MAX_GROUP) {
    const message = receiveMessageOnPort(port)?.message as Message | undefined;
    if (message === undefined) return false;
    if (message === 'close') return true;
    group.push(...message);
  }
  return false;
};

/**
 * Answers a group and whatever arrives meanwhile. While another process holds the lock, requests past their deadline
 * expire and the others are retried. True: `close` was received.
 */
const answerAll = (body: ThreadBody, port: MessagePort, first: Message): boolean => {
  let group: QueuedRequest[] = first === 'close' ? [] : [...first];
  let isLast = first === 'close' || gather(port, group);
  while (group.length > 0) {
    const now = monotonicMs();
    const answers = group.filter((request) => request.notAfter < now).map(expired);
    const timely = group.filter((request) => request.notAfter >= now);
    const outcomes = attempt(body, timely);
    group = [];
    for (const [at, request] of timely.entries()) {
      const outcome = outcomes[at] ?? NOT_ANSWERED;
      if ('error' in outcome && isBusy(outcome.error)) group.push(request);
      else answers.push(toAnswer(request.id, outcome));
    }
    if (answers.length > 0) port.postMessage(answers);
    isLast ||= gather(port, group);
  }
  return isLast;
};

/** The main loop of a writer thread: answers all waiting requests as a group, again and again. */
export const answerInThread = (body: ThreadBody): void => {
  const port = parentPort;
  if (port === null) throw new Error('answerInThread must run in a worker thread.');
  let tidying: NodeJS.Timeout | undefined;

  /** If this fails, it is retried after later requests, and at close. */
  const tidy = (): void => {
    tidying = undefined;
    try {
      body.tidy?.();
    } catch {
      // Tidying only saves space.
    }
  };

  port.on('message', (message: Message) => {
    if (!answerAll(body, port, message)) {
      tidying ??= setTimeout(tidy, body.tidyMs ?? TIDY_MS);
      return;
    }
    clearTimeout(tidying);
    body.close();
    port.close();
  });
};
