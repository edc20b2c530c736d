import type { Reader as Questions } from '../../projections/projector';
import { turns, type Turns } from '../turns';
import type { Reader } from './read-models';

/** When there are more answers than this, all of them are dropped. */
const MOST_REMEMBERED = 2_000;
/** Callers choose part of a question's name, so answers to long ones are not kept. */
const LONGEST_NAME = 1_000;

/**
 * Keeps the answers of a reader as long as nothing changes. All arguments of a question are part of its name, so no two
 * tenants can share an answer. Promises are kept, and those that fail are dropped.
 */
const remembered = (reader: Reader): Questions => {
  const answers = new Map<string, Promise<unknown>>();

  const once =
    <A extends readonly unknown[], R>(what: keyof Questions, ask: (...asked: A) => Promise<R>) =>
    (...asked: A): Promise<R> => {
      const name = `${what} ${JSON.stringify(asked)}`;
      const known = answers.get(name);
      if (known !== undefined) return known as Promise<R>;
      if (name.length > LONGEST_NAME) return ask(...asked);
      if (answers.size >= MOST_REMEMBERED) answers.clear();
      const answer = ask(...asked);
      answers.set(name, answer);
      answer.catch(() => answers.delete(name));
      return answer;
    };

  const findOnce = once('find', reader.find);
  return {
    get: once('get', reader.get),
    /** Whole pages are not kept: they are large and seldom asked for twice. */
    find: (tenantId, collection, query) =>
      (query.limit > 1 ? reader.find : findOnce)(tenantId, collection, query),
    countBefore: once('countBefore', reader.countBefore),
  };
};

/** A new object each time, so that nothing that is cached by its identity lives longer. */
const forgetful = ({ get, find, countBefore }: Reader): Questions => ({ get, find, countBefore });

/** Readers that ask the store only whether anything has changed, as long as nothing has. */
export interface RememberingReaders {
  /**
   * To be awaited when a question arrives, before a reader is asked for. What the reader then shows is not older than
   * that, in whichever process it changed. Questions that go on in one turn of the event loop share one look; a turn is
   * bounded in time, however many wait.
   */
  upToDate(): Promise<void>;
  reader(projection: string): Questions;
}

interface Known {
  readonly of: Reader;
  readonly token: number;
  readonly turn: number;
  readonly reader: Questions;
}

export const remembering = (
  readerOf: (projection: string) => Reader,
  taking: Turns = turns(),
): RememberingReaders => {
  const known = new Map<string, Known>();

  return {
    upToDate: taking.next,
    reader: (projection) => {
      const of = readerOf(projection);
      const turn = taking.count();
      const last = known.get(projection);
      if (last?.of === of && last.turn === turn) return last.reader;
      const token = of.changeToken?.();
      if (token === undefined) return forgetful(of);
      const isSame = last?.of === of && last.token === token;
      const reader = isSame ? last.reader : remembered(of);
      known.set(projection, { of, token, turn, reader });
      return reader;
    },
  };
};
