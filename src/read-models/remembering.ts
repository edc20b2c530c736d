import type { Document, Query, Reader } from '../../projections/projector';
import type { Generation } from './read-models';

/** More than this is not remembered: then it begins anew. */
const MOST_REMEMBERED = 2_000;

/** What was read of a generation while it stayed as it is. Promises are kept, so that what fails is not remembered. */
const remembered = (generation: Generation): Reader => {
  const answers = new Map<string, Promise<unknown>>();

  const once = <T>(name: string, ask: () => Promise<T>): Promise<T> => {
    const known = answers.get(name);
    if (known !== undefined) return known as Promise<T>;
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

  return { get, find, count: generation.count };
};

/**
 * A reader that asks the store only whether anything has changed, as long as nothing has. It is asked for anew for every
 * question, and then looks: so it never shows an older state than the store would, in whichever process that changed.
 */
export const remembering = (
  readerOf: (projection: string) => Generation,
): ((projection: string) => Reader) => {
  const known = new Map<string, { generation: Generation; version: number; reader: Reader }>();
  return (projection) => {
    const generation = readerOf(projection);
    const version = generation.version?.();
    if (version === undefined) return generation;
    const last = known.get(projection);
    if (last?.generation === generation && last.version === version) return last.reader;
    const reader = remembered(generation);
    known.set(projection, { generation, version, reader });
    return reader;
  };
};
