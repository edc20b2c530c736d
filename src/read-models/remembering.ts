import type { Document, Query, Reader } from '../../projections/projector';
import type { Generation } from './read-models';

/** More than this is not remembered: then it begins anew. */
const MOST_REMEMBERED = 2_000;
/** Whoever asks chooses part of a question's name: long ones are not kept. */
const LONGEST_NAME = 1_000;

/** What was read of a generation while it stayed as it is. Promises are kept, so that what fails is not remembered. */
const remembered = (generation: Generation): Reader => {
  const answers = new Map<string, Promise<unknown>>();

  const once = <T>(name: string, ask: () => Promise<T>): Promise<T> => {
    const known = answers.get(name);
    if (known !== undefined) return known as Promise<T>;
    if (name.length > LONGEST_NAME) return ask();
    if (answers.size >= MOST_REMEMBERED) answers.clear();
    const answer = ask();
    answers.set(name, answer);
    answer.catch(() => answers.delete(name));
    return answer;
  };

  const get = (tenantId: string, collection: string, key: string): Promise<Document | undefined> =>
    once(`${tenantId} ${collection} ${key}`, () => generation.get(tenantId, collection, key));

  /** Whole pages are not kept: they are large, and seldom asked for twice. */
  const find = (tenantId: string, collection: string, query: Query): Promise<readonly Document[]> =>
    query.limit > 1
      ? generation.find(tenantId, collection, query)
      : once(`${tenantId}?${collection} ${JSON.stringify(query)}`, () =>
          generation.find(tenantId, collection, query),
        );

  /** Who pages through a long selection has it counted for every page. */
  const count: Reader['count'] = (tenantId, collection, selection) =>
    once(`${tenantId}#${collection} ${JSON.stringify(selection)}`, () =>
      generation.count(tenantId, collection, selection),
    );

  const countBefore: Reader['countBefore'] = (tenantId, collection, line, value) =>
    once(`${tenantId}<${collection} ${JSON.stringify([line, value])}`, () =>
      generation.countBefore(tenantId, collection, line, value),
    );

  return { get, find, count, countBefore };
};

/** Another one at every turn, so that nobody keeps anything by it for longer. */
const forgetful = ({ get, find, count, countBefore }: Generation): Reader => ({
  get,
  find,
  count,
  countBefore,
});

/** Readers that ask the store only whether anything has changed, as long as nothing has. */
export interface RememberingReaders {
  /**
   * To be awaited when a question arrives, before a reader is asked for. What the reader then shows is not older than
   * that, in whichever process it changed: all the questions that arrive in one turn of the event loop share one look.
   */
  upToDate(): Promise<void>;
  reader(projection: string): Reader;
}

interface Known {
  readonly generation: Generation;
  readonly version: number;
  readonly turn: number;
  readonly reader: Reader;
}

export const remembering = (readerOf: (projection: string) => Generation): RememberingReaders => {
  const known = new Map<string, Known>();
  let turn = 0;
  let next: Promise<void> | undefined;

  const nextTurn = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(() => {
        turn += 1;
        next = undefined;
        resolve();
      });
    });

  return {
    upToDate: () => (next ??= nextTurn()),
    reader: (projection) => {
      const generation = readerOf(projection);
      const last = known.get(projection);
      if (last?.generation === generation && last.turn === turn) return last.reader;
      const version = generation.version?.();
      if (version === undefined) return forgetful(generation);
      const isSame = last?.generation === generation && last.version === version;
      const reader = isSame ? last.reader : remembered(generation);
      known.set(projection, { generation, version, turn, reader });
      return reader;
    },
  };
};
