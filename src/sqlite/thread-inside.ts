import { parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { monotonicMs } from '../clock';
import { codeOf, messageOf } from '../fault';
import type { Answer, Question } from './thread';

/** Requests that arrived together are given together, at most this many: that is what makes a group commit. */
const LARGEST_GROUP = 256;

export type Outcome = { readonly value: unknown } | { readonly error: unknown };

export interface Inside {
  /** One outcome per request, in order. What it throws becomes the outcome of all of them. */
  answer(requests: readonly unknown[]): readonly Outcome[];
  close(): void;
}

const toAnswer = (id: number, outcome: Outcome): Answer => {
  if ('value' in outcome) return { id, value: outcome.value };
  const { error } = outcome;
  const more = error instanceof Error && 'more' in error ? (error.more as Record<string, unknown>) : {};
  return { id, fault: { code: codeOf(error) ?? 'failed', message: messageOf(error), more } };
};

const answerGroup = (inside: Inside, group: readonly Question[]): readonly Answer[] => {
  const now = monotonicMs();
  const late = group.filter((question) => question.notAfter < now);
  const timely = group.filter((question) => question.notAfter >= now);
  const outcomes = attempt(inside, timely);
  return [
    ...late.map(({ id }) => ({
      id,
      fault: { code: 'expired', message: 'Its time was up before it was begun.' },
    })),
    ...timely.map(({ id }, at) => toAnswer(id, outcomes[at] ?? { error: new Error('It was not answered.') })),
  ];
};

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

  const next = (): Question | 'close' | undefined =>
    receiveMessageOnPort(port)?.message as Question | 'close';
  const close = (): void => {
    inside.close();
    port.close();
  };

  port.on('message', (first: Question | 'close') => {
    let message: Question | 'close' | undefined = first;
    while (message !== undefined) {
      const group: Question[] = [];
      while (message !== undefined && message !== 'close' && group.length < LARGEST_GROUP) {
        group.push(message);
        message = group.length < LARGEST_GROUP ? next() : undefined;
      }
      for (const answer of answerGroup(inside, group)) port.postMessage(answer);
      if (message === 'close') return close();
      message = next();
    }
  });
};
