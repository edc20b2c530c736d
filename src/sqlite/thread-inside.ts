import { parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { monotonicMs } from '../clock';
import { codeOf, messageOf } from '../fault';
import { SQLITE_BUSY } from './database';
import { beginWrite, endWrite } from './suspension';
import type { Answer, Question } from './thread';

/** Requests that arrived together are given together, at most this many: that is what makes a group commit. */
const LARGEST_GROUP = 256;

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

export interface Inside {
  /** One outcome per request, in order. What it throws becomes the outcome of all of them. */
  answer(requests: readonly unknown[]): readonly Outcome[];
  close(): void;
  /** Called now and then, but only after something was answered. */
  tidy?(): void;
  readonly tidyMs?: number;
}

/** Unless the thread has a time of its own. */
const TIDY_MS = 60_000;

const isBusy = (outcome: Outcome | undefined): boolean =>
  outcome !== undefined &&
  'error' in outcome &&
  (outcome.error as { errcode?: number } | undefined)?.errcode === SQLITE_BUSY;

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

const attempt = (inside: Inside, questions: readonly Question[]): readonly Outcome[] => {
  try {
    return questions.length === 0 ? [] : inside.answer(questions.map((question) => question.request));
  } catch (error) {
    return questions.map(() => ({ error }));
  }
};

/** The body of a writing thread: takes all requests that wait, answers them as a group, and so on. */
export const answerInThread = (inside: Inside): void => {
  const port = parentPort;
  if (port === null) throw new Error('answerInThread belongs in a worker thread.');
  let closing = false;
  let tidying: NodeJS.Timeout | undefined;

  /** What fails is tried again after the next requests, and when the thread is closed. */
  const tidy = (): void => {
    tidying = undefined;
    if (!beginWrite()) return;
    try {
      inside.tidy?.();
    } catch {
      // It only saves space.
    } finally {
      endWrite();
    }
  };

  const send = (answer: Answer): void => port.postMessage(answer);

  /** Adds what has arrived since, up to a full group or the word that it was the last. */
  const gather = (group: Question[]): void => {
    while (!closing && group.length < LARGEST_GROUP) {
      const message = receiveMessageOnPort(port)?.message as Question | 'close' | undefined;
      if (message === undefined) return;
      if (message === 'close') closing = true;
      else group.push(message);
    }
  };

  /** While another process holds the lock, those whose time is up are told so and the others are tried again. */
  const answerAll = (first: Question | 'close'): void => {
    let group: Question[] = [];
    if (first === 'close') closing = true;
    else group.push(first);
    gather(group);
    while (group.length > 0) {
      const now = monotonicMs();
      for (const late of group.filter((question) => question.notAfter < now)) send(expired(late));
      const timely = group.filter((question) => question.notAfter >= now);
      const outcomes = attempt(inside, timely);
      group = timely.filter((_, at) => isBusy(outcomes[at]));
      timely.forEach(({ id }, at) => {
        const outcome = outcomes[at] ?? { error: new Error('It was not answered.') };
        if (!isBusy(outcome)) send(toAnswer(id, outcome));
      });
      gather(group);
    }
  };

  port.on('message', (message: Question | 'close') => {
    answerAll(message);
    if (!closing) {
      tidying ??= setTimeout(tidy, inside.tidyMs ?? TIDY_MS);
      return;
    }
    clearTimeout(tidying);
    inside.close();
    port.close();
  });
};
