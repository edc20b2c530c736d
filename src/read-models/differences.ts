import { isDeepStrictEqual } from 'node:util';
import type { Compared, Generation, Scanned, Scanner, Suspect } from './read-models';

/** What is compared. */
export interface Scope {
  readonly collection: string;
  /** Only documents of this tenant. */
  readonly tenantId?: string | undefined;
}

const PAGE = 500;

/** The documents of a collection one page after the other, held in memory one page at a time. */
const pagesOf = (generation: Scanner, { collection, tenantId }: Scope) => {
  let page: readonly Scanned[] = [];
  let at = 0;
  let after: { tenantId: string; key?: string } | undefined =
    tenantId === undefined ? undefined : { tenantId };
  let isOver = false;

  const fetch = async (): Promise<void> => {
    const rows = await generation.scan(collection, PAGE, after);
    page = tenantId === undefined ? rows : rows.filter((row) => row.tenantId === tenantId);
    at = 0;
    after = rows.at(-1);
    isOver = page.length === 0;
  };

  return {
    /** The next document, which stays the next one until `take`. Undefined: there is none. */
    next: async (): Promise<Scanned | undefined> => {
      if (at >= page.length && !isOver) await fetch();
      return page[at];
    },
    take: (): void => {
      at += 1;
    },
  };
};

/** By the bytes of their UTF-8, as `scan` orders them. */
const order = (one: string, other: string): number =>
  one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));

/** Negative: the first one comes first. What is missing comes last. */
const orderOf = (live: Scanned | undefined, rebuilt: Scanned | undefined): number => {
  if (live === undefined || rebuilt === undefined) return live === undefined ? 1 : -1;
  return order(live.tenantId, rebuilt.tenantId) || order(live.key, rebuilt.key);
};

/** Walks both in the order of tenant and key. Any two stores can be compared so. */
async function* orderedDifferences(live: Scanner, rebuilt: Scanner, scope: Scope): AsyncGenerator<Compared> {
  const { collection } = scope;
  const [ours, theirs] = [pagesOf(live, scope), pagesOf(rebuilt, scope)];
  let documents = 0;
  let suspects: Suspect[] = [];
  for (;;) {
    const [one, other] = [await ours.next(), await theirs.next()];
    const found = one ?? other;
    if (found === undefined || documents >= PAGE || suspects.length >= PAGE) {
      yield { documents, suspects };
      [documents, suspects] = [0, []];
    }
    if (found === undefined) return;
    const comes = orderOf(one, other);
    const isInLive = comes <= 0;
    if (isInLive) ours.take();
    if (comes >= 0) theirs.take();
    documents += isInLive ? 1 : 0;
    if (comes === 0 && isDeepStrictEqual(one?.document, other?.document)) continue;
    const { tenantId, key } = isInLive ? (one as Scanned) : (other as Scanned);
    suspects.push({ tenantId, collection, key, seenIn: isInLive ? 'live' : 'rebuilt' });
  }
}

/**
 * The documents of which two generations may have different contents, step by step; both may change during the comparison. Whatever
 * differed all the time is among the suspects. Not every suspect differs: it may have been equal in another form, or have
 * changed since.
 */
export const differences = (live: Generation, rebuilt: Generation, scope: Scope): AsyncIterable<Compared> =>
  (scope.tenantId === undefined ? live.ownDifferences?.(rebuilt, scope.collection) : undefined) ??
  orderedDifferences(live.reader, rebuilt.reader, scope);
