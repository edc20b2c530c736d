import type { Reader as Queries } from '../../projections/projector';
import type { Reader } from './read-models';

/** Above this number of answers, all are dropped. */
const MAX_CACHED = 2_000;
/** Callers choose parts of a query's name, so answers with long names are not cached. */
const MAX_NAME_LENGTH = 1_000;

/**
 * Caches the answers of a reader while nothing changes. All arguments of a query are part of its name, so tenants never
 * share an answer. Caches promises, and drops those that reject.
 */
const cached = (reader: Reader): Queries => {
  const answers = new Map<string, Promise<unknown>>();

  const once = <T>(name: string, ask: () => Promise<T>): Promise<T> => {
    const known = answers.get(name);
    if (known !== undefined) return known as Promise<T>;
    if (name.length > MAX_NAME_LENGTH) return ask();
    if (answers.size >= MAX_CACHED) answers.clear();
    const answer = ask();
    answers.set(name, answer);
    answer.catch(() => answers.delete(name));
    return answer;
  };

  return {
    get: (tenantId, collection, key) =>
      once(`get ${tenantId} ${collection} ${key}`, () => reader.get(tenantId, collection, key)),
    /** Pages are not cached: they are large and seldom requested twice. */
    find: (tenantId, collection, query) =>
      query.limit > 1
        ? reader.find(tenantId, collection, query)
        : once(`find ${JSON.stringify([tenantId, collection, query])}`, () =>
            reader.find(tenantId, collection, query),
          ),
    countsBefore: (...args) =>
      once(`countsBefore ${JSON.stringify(args)}`, () => reader.countsBefore(...args)),
  };
};

interface Known {
  readonly of: Reader;
  readonly token: number;
  readonly reader: Queries;
}

/**
 * Readers that only ask the store whether anything has changed, for as long as nothing has, whichever process made the
 * last change. A store that cannot tell whether it has changed is queried every time.
 */
export const cachingReader = (readerOf: (projection: string) => Reader) => {
  const known = new Map<string, Known>();

  return (projection: string): Queries => {
    const of = readerOf(projection);
    const last = known.get(projection);
    const token = of.changeToken?.();
    // A new object each time, so that nothing cached by its identity outlives it.
    if (token === undefined) return { ...of };
    const isUnchanged = last?.of === of && last.token === token;
    const reader = isUnchanged ? last.reader : cached(of);
    known.set(projection, { of, token, reader });
    return reader;
  };
};
