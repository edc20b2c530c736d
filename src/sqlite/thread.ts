import { parentPort, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads';
import { monotonicMs } from '../clock';
import { codeOf, fault, messageOf, reportedFault } from '../fault';
import { isBusy } from './database';
import { beginWrite, endWrite, someoneWaits, whenWritable } from './suspension';

/**
 * A thread that owns the writing connections of some SQLite files, so that a slow disk or a busy lock never stops the
 * thread that answers HTTP. `startThread` is the caller's end, `answerInThread` the body of the thread itself.
 */
export interface Thread {
  /**
   * Sends one request and waits for its answer. Rejects with the answer's fault, or with `expired` (not done, for
   * certain), or with `no_answer` (perhaps done) when the time is up or the thread died.
   */
  call<T>(request: unknown, withinMs: number): Promise<T>;
  /** Lets the thread finish what it has, and ends it. */
  close(): Promise<void>;
}

interface Question {
  readonly id: number;
  readonly request: unknown;
  /** On the monotonic clock: a request that was not begun by then is not done at all. */
  readonly notAfter: number;
}

/** What is sent to the thread. */
type Message = readonly Question[] | 'close';

type Answer =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number;
      readonly fault: { code: string; message: string; more?: Record<string, unknown> };
    };

/** Requests that come together are handled together, which makes a group commit; a group of this size gets no more. */
const FULL_GROUP = 256;

/** A request is not begun within this time before its caller gives up: so the caller learns that it was not done. */
const EXPIRY_MS = 50;

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Calls that wait for an answer, by the number of their question. */
const waitingCalls = () => {
  const waiting = new Map<number, Waiting>();
  let nextId = 1;

  const settle = (answer: Answer): void => {
    const waiter = waiting.get(answer.id);
    if (waiter === undefined) return;
    waiting.delete(answer.id);
    clearTimeout(waiter.timer);
    if ('value' in answer) waiter.resolve(answer.value as never);
    else waiter.reject(reportedFault(answer.fault.code, answer.fault.message, answer.fault.more));
  };
  const lose = (id: number, message: string): void => settle({ id, fault: { code: 'no_answer', message } });

  return {
    settle,
    loseAll: (message: string): void => {
      for (const id of waiting.keys()) lose(id, message);
    },
    add: <T>(withinMs: number, send: (id: number) => void): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        const id = nextId++;
        const late = `The writing thread did not answer within ${withinMs} ms.`;
        waiting.set(id, { resolve, reject, timer: setTimeout(() => lose(id, late), withinMs) });
        send(id);
      }),
  };
};

/** A worker from its start to its end. */
const startWorker = (file: string, data: unknown, onAnswer: () => void, onExit: () => void) => {
  const worker = new Worker(file, { workerData: data });
  const calls = waitingCalls();
  /** Including those whose callers no longer wait: the thread may still be writing them. */
  let unanswered = 0;
  let died = 'The writing thread ended.';
  /** What is asked in one turn of the event loop is sent, and so written, together. */
  let questions: Question[] = [];
  const send = (): void => {
    if (questions.length > 0) worker.postMessage(questions);
    questions = [];
  };
  worker.on('message', (answers: readonly Answer[]) => {
    endWrite(answers.length);
    unanswered -= answers.length;
    answers.forEach(calls.settle);
    onAnswer();
  });
  worker.on('error', (error) => (died = `The writing thread died: ${error.message}`));
  worker.on('exit', () => {
    endWrite(unanswered);
    unanswered = 0;
    calls.loseAll(died);
    onExit();
  });
  return {
    isIdle: () => unanswered === 0,
    call: <T>(request: unknown, withinMs: number) =>
      calls.add<T>(withinMs, (id) => {
        unanswered += 1;
        const notAfter = monotonicMs() + Math.max(0, withinMs - EXPIRY_MS);
        const count = questions.push({ id, request, notAfter });
        if (count === 1) setImmediate(send);
        else if (count === FULL_GROUP) send();
      }),
    /** The caller has counted a write (`beginWrite`): closing its files writes, too. */
    end: async (): Promise<void> => {
      const ended = new Promise((resolve) => worker.once('exit', resolve));
      send();
      worker.postMessage('close');
      await ended;
      endWrite();
    },
  };
};

/**
 * A thread that has died is started again by the next call. So is one that was ended because nothing was asked of it for
 * `idleMs`: a thread costs about 10 MB.
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
    if (!beginWrite()) return endLater();
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
      while (!closing && (someoneWaits() || !beginWrite())) await whenWritable();
      if (closing) throw fault('expired', 'The writing thread is closed.');
      worker ??= start();
      return worker.call<T>(request, withinMs);
    },

    close: async () => {
      closing = true;
      while (worker !== undefined && !beginWrite()) await whenWritable();
      await worker?.end();
      await ending;
    },
  };
};

/** The default. */
const TIDY_MS = 60_000;

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

interface ThreadBody {
  /** One outcome per request, in order. What it throws becomes the outcome of all of them. */
  answer(requests: readonly unknown[]): readonly Outcome[];
  close(): void;
  /** Called from time to time, but only after something was answered. */
  tidy?(): void;
  readonly tidyMs?: number;
}

const toAnswer = (id: number, outcome: Outcome): Answer => {
  if ('value' in outcome) return { id, value: outcome.value };
  const { error } = outcome;
  const more = error instanceof Error && 'more' in error ? (error.more as Record<string, unknown>) : {};
  return { id, fault: { code: codeOf(error) ?? 'failed', message: messageOf(error), more } };
};

const expired = ({ id }: Question): Answer => ({
  id,
  fault: { code: 'expired', message: 'Its time was up before it could be begun.' },
});

const NOT_ANSWERED: Outcome = { error: new Error('It was not answered.') };

const attempt = (body: ThreadBody, questions: readonly Question[]): readonly Outcome[] => {
  try {
    return questions.length === 0 ? [] : body.answer(questions.map((question) => question.request));
  } catch (error) {
    return questions.map(() => ({ error }));
  }
};

/** Adds what has arrived since, up to a full group. True: it was the last. */
const gather = (port: MessagePort, group: Question[]): boolean => {
  while (group.length < FULL_GROUP) {
    const message = receiveMessageOnPort(port)?.message as Message | undefined;
    if (message === undefined) return false;
    if (message === 'close') return true;
    group.push(...message);
  }
  return false;
};

/**
 * Answers a group and whatever arrives while it does. While another process holds the lock, requests whose time is up are
 * refused and the others are retried. True: it was the last.
 */
const answerAll = (body: ThreadBody, port: MessagePort, first: Message): boolean => {
  let group: Question[] = first === 'close' ? [] : [...first];
  let isLast = first === 'close' || gather(port, group);
  while (group.length > 0) {
    const now = monotonicMs();
    const answers = group.filter((question) => question.notAfter < now).map(expired);
    const timely = group.filter((question) => question.notAfter >= now);
    const outcomes = attempt(body, timely);
    group = [];
    for (const [at, question] of timely.entries()) {
      const outcome = outcomes[at] ?? NOT_ANSWERED;
      if ('error' in outcome && isBusy(outcome.error)) group.push(question);
      else answers.push(toAnswer(question.id, outcome));
    }
    if (answers.length > 0) port.postMessage(answers);
    isLast ||= gather(port, group);
  }
  return isLast;
};

/** The body of a writing thread: takes all requests that wait, answers them as a group, and so on. */
export const answerInThread = (body: ThreadBody): void => {
  const port = parentPort;
  if (port === null) throw new Error('answerInThread belongs in a worker thread.');
  let tidying: NodeJS.Timeout | undefined;

  /** If it fails, it is retried after the next requests, and when the thread is closed. */
  const tidy = (): void => {
    tidying = undefined;
    if (!beginWrite()) return;
    try {
      body.tidy?.();
    } catch {
      // It only saves space.
    } finally {
      endWrite();
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
