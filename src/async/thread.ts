import { parentPort, Worker, type ResourceLimits } from 'node:worker_threads';
import { codeOf, fault, messageOf, type Fault, type FaultCode } from '../fault';
import { TIMES } from '../times';
import { monotonicMs } from './clock';

/** What answers requests: a worker thread, of which `startThread` is the caller's side, or the caller's own. */
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

/** An error as it crosses threads. An expected one has a code, a bug a stack. */
export interface Failure {
  readonly code?: string;
  readonly message: string;
  readonly more?: Record<string, unknown>;
  readonly stack?: string | undefined;
}

export const failureOf = (error: unknown): Failure => {
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === undefined) return { message, stack: error instanceof Error ? error.stack : undefined };
  const more = 'more' in (error as Error) ? (error as Fault).more : {};
  return { code, message, more };
};

export const errorOf = ({ code, message, more, stack }: Failure): Error =>
  code === undefined
    ? Object.assign(new Error(message), stack === undefined ? {} : { stack })
    : fault(code as FaultCode, message, more); // the code may come from a library

type Answer =
  { readonly id: number; readonly value: unknown } | { readonly id: number; readonly failure: Failure };

/** What a thread sends back: the answers to a group of requests, or what it reported in one turn of its event loop. */
interface Turn {
  readonly answers: readonly Answer[];
  readonly reports: readonly unknown[];
}

/** Requests that arrive together are answered together, as a group commit of at most about this many. */
const MAX_GROUP = 256;

/** More are sent in parts, so that the thread works while this one goes on. */
const SENT_TOGETHER = 16;

/** Calls waiting for an answer, by id. */
const pendingCalls = () => {
  const pending = new Map<number, (answer: Answer) => void>();
  let nextId = 1;
  const settle = (answer: Answer): void => pending.get(answer.id)?.(answer);
  const fail = (id: number, message: string): void => settle({ id, failure: { code: 'no_answer', message } });

  return {
    settle,
    failAll: (message: string): void => {
      for (const id of pending.keys()) fail(id, message);
    },
    add: <T>(withinMs: number, send: (id: number) => void): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        const id = nextId++;
        const late = `The thread did not answer within ${withinMs} ms.`;
        const timer = setTimeout(() => fail(id, late), withinMs);
        pending.set(id, (answer) => {
          pending.delete(id);
          clearTimeout(timer);
          if ('value' in answer) resolve(answer.value as T);
          else reject(errorOf(answer.failure));
        });
        send(id);
      }),
  };
};

export interface ThreadOptions {
  readonly heap?: ResourceLimits;
  /** Called with what the thread reports, before the answers of the same turn. */
  readonly onReport?: (report: never) => void;
  /** Called when it has exited without being closed. It is not started again: all calls fail with `no_answer`. */
  readonly onDeath?: (error: Error) => void;
}

/** Started by the first call. */
export const startThread = (file: string, data: unknown, options: ThreadOptions = {}): Thread => {
  const calls = pendingCalls();
  let worker: Worker | undefined;
  let isClosing = false;
  let died: string | undefined;
  let ended = Promise.resolve();
  /** Requests of one turn of the event loop are sent together, and so answered together. */
  let requests: QueuedRequest[] = [];
  const send = (): void => {
    if (requests.length > 0) worker?.postMessage(requests);
    requests = [];
  };
  const start = (): Worker => {
    const started = new Worker(file, { workerData: data, resourceLimits: options.heap ?? {} });
    let error = new Error('It exited.');
    started.on('message', ({ answers, reports }: Turn) => {
      for (const report of reports) options.onReport?.(report as never);
      answers.forEach(calls.settle);
    });
    started.on('error', (reason) => (error = reason));
    ended = new Promise((resolve) => started.once('exit', resolve)).then(() => {
      died = `The thread died: ${error.message}`;
      calls.failAll(died);
      if (!isClosing) options.onDeath?.(error);
    });
    return started;
  };
  return {
    call: async <T>(request: unknown, withinMs: number): Promise<T> => {
      if (isClosing) throw fault('expired', 'The thread is closed.');
      if (died !== undefined) throw fault('no_answer', died);
      worker ??= start();
      return calls.add<T>(withinMs, (id) => {
        const notAfter = monotonicMs() + Math.max(0, withinMs - TIMES.answerMs);
        const count = requests.push({ id, request, notAfter });
        if (count === 1) setImmediate(send);
        else if (count % SENT_TOGETHER === 0) send();
      });
    },
    // Asks it to exit: `terminate()` while it is inside SQLite would crash the whole process.
    close: async () => {
      isClosing = true;
      send();
      worker?.postMessage('close' satisfies Message);
      await ended;
    },
  };
};

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** What answers requests. */
export interface ThreadBody {
  /** The answer to each request, in order. Those that come in the same turn of the event loop are sent together. */
  answer(requests: readonly unknown[]): readonly Promise<unknown>[];
  /** Whether a request that failed with this error is tried again until its deadline. */
  isRetried(error: unknown): boolean;
  close(): void | Promise<void>;
}

const expired = ({ id }: QueuedRequest): Answer => ({
  id,
  failure: { code: 'expired', message: 'The deadline passed before the request could start.' },
});

/** Answers each request of a group, or tries it again. */
const answerGroup = async (
  body: ThreadBody,
  group: readonly QueuedRequest[],
  post: (answer: Answer) => void,
  tryAgain: (request: QueuedRequest) => void,
): Promise<void> => {
  const now = monotonicMs();
  const timely = group.filter(({ notAfter }) => notAfter >= now);
  for (const request of group) if (request.notAfter < now) post(expired(request));
  const settle = async (request: QueuedRequest, answer: Promise<unknown>): Promise<void> => {
    try {
      post({ id: request.id, value: await answer });
    } catch (error) {
      if (body.isRetried(error)) tryAgain(request);
      else post({ id: request.id, failure: failureOf(error) });
    }
  };
  const answers = timely.length === 0 ? [] : body.answer(timely.map(({ request }) => request));
  await Promise.all(answers.map((answer, at) => settle(timely[at] as QueuedRequest, answer)));
};

/**
 * The main loop of a thread: answers all waiting requests as a group, again and again. Requests that have to be tried
 * again wait for a moment in which the thread does other work. Returns how to report something.
 */
export const answerInThread = (body: ThreadBody): ((report: unknown) => void) => {
  const port = parentPort;
  if (port === null) throw new Error('answerInThread must run in a worker thread.');
  const waiting: QueuedRequest[] = [];
  let underWay = 0;
  let isClosing = false;
  let beginning: NodeJS.Immediate | undefined;
  let retrying: NodeJS.Timeout | undefined;
  let answers: Answer[] = [];
  let reports: unknown[] = [];

  const send = (): void => {
    if (answers.length + reports.length > 0) port.postMessage({ answers, reports } satisfies Turn);
    answers = [];
    reports = [];
  };
  const sendSoon = (): void => {
    if (answers.length + reports.length === 1) queueMicrotask(send);
  };
  const post = (answer: Answer): void => {
    answers.push(answer);
    sendSoon();
  };
  const close = async (): Promise<void> => {
    await body.close();
    send();
    port.close();
  };

  const work = async (): Promise<void> => {
    beginning = undefined;
    const group = waiting.splice(0, MAX_GROUP);
    if (waiting.length > 0) workSoon();
    underWay += 1;
    await answerGroup(body, group, post, tryAgain);
    underWay -= 1;
    if (underWay === 0 && waiting.length === 0 && isClosing) await close();
  };
  /** What has arrived by then is a group. */
  const workSoon = (): void => {
    clearTimeout(retrying);
    retrying = undefined;
    beginning ??= setImmediate(() => void work());
  };
  const tryAgain = (request: QueuedRequest): void => {
    waiting.push(request);
    retrying ??= setTimeout(workSoon, TIMES.busyRetryMs);
  };

  port.on('message', (message: Message) => {
    if (message === 'close') isClosing = true;
    else waiting.push(...message);
    workSoon();
  });
  return (report) => {
    reports.push(report);
    sendSoon();
  };
};
