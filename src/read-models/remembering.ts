import type { Reader as Questions } from '../../projections/projector';
import { currentTurn } from '../turns';
import type { Reader } from './read-models';

/** When there are more answers than this, all of them are dropped. */
const MAX_REMEMBERED = 2_000;
/** Callers choose part of a question's name, so answers to long ones are not kept. */
const MAX_NAME_LENGTH = 1_000;

/** Answers questions as of a look at the store or later. */
export interface RememberingReader extends Questions {
  /** The outcome of questions to the store, under a name of its own for each outcome. */
  once<T>(name: string, ask: () => Promise<T>): Promise<T>;
}

/**
 * Keeps the answers of a reader as long as nothing changes. All arguments of a question are part of its name, so no two
 * tenants can share an answer. Promises are kept, and those that fail are dropped.
 */
const remembered = (reader: Reader): RememberingReader => {
  const answers = new Map<string, Promise<unknown>>();

  const once = <T>(name: string, ask: () => Promise<T>): Promise<T> => {
    const known = answers.get(name);
    if (known !== undefined) return known as Promise<T>;
    if (name.length > MAX_NAME_LENGTH) return ask();
    if (answers.size >= MAX_REMEMBERED) answers.clear();
    const answer = ask();
    answers.set(name, answer);
    answer.catch(() => answers.delete(name));
    return answer;
  };

  return {
    once,
    get: (tenantId, collection, key) =>
      once(`get ${tenantId} ${collection} ${key}`, () => reader.get(tenantId, collection, key)),
    /** Whole pages are not kept: they are large and seldom asked for twice. */
    find: (tenantId, collection, query) =>
      query.limit > 1
        ? reader.find(tenantId, collection, query)
        : once(`find ${JSON.stringify([tenantId, collection, query])}`, () =>
            reader.find(tenantId, collection, query),
          ),
    countBefore: (...asked) =>
      once(`countBefore ${JSON.stringify(asked)}`, () => reader.countBefore(...asked)),
  };
};

/** A new object each time, so that nothing that is cached by its identity lives longer. */
const forgetful = ({ get, find, countBefore }: Reader): RememberingReader => ({
  get,
  find,
  countBefore,
  once: (_, ask) => ask(),
});

/** Readers that ask the store only whether anything has changed, as long as nothing has. */
export interface RememberingReaders {
  /**
   * What it shows is not older than the beginning of this turn of the event loop, in whichever process it changed: all
   * who ask in one turn share one look. So a request that arrived in an earlier turn sees everything that was visible
   * when it arrived.
   */
  reader(projection: string): RememberingReader;
  /** What the readers show from here on is not older than this call. */
  lookAgain(): void;
}

interface Known {
  readonly of: Reader;
  readonly token: number;
  readonly turn: number;
  readonly reader: RememberingReader;
}

/**
 * A store that cannot tell whether it has changed is asked every time, or its answers are kept until a `lookAgain` after
 * which `applied` has found a change.
 */
export const remembering = (
  readerOf: (projection: string) => Reader,
  ifItCannotTell: 'ask' | 'keep' = 'ask',
): RememberingReaders => {
  const known = new Map<string, Known>();
  let looks = 0;

  return {
    lookAgain: () => {
      looks += 1;
    },
    reader: (projection) => {
      const of = readerOf(projection);
      const turn = currentTurn() + looks;
      const last = known.get(projection);
      if (last?.of === of && last.turn === turn) return last.reader;
      const token =
        of.changeToken?.() ?? (ifItCannotTell === 'keep' ? (of.appliedToken?.() ?? looks) : undefined);
      if (token === undefined) return forgetful(of);
      const isSame = last?.of === of && last.token === token;
      const reader = isSame ? last.reader : remembered(of);
      known.set(projection, { of, token, turn, reader });
      return reader;
    },
  };
};
