import { isDeepStrictEqual } from 'node:util';
import type { Compared, Generation, Scanned, Scanner, Suspect } from './read-models';
import { scanAll } from './scanning';

/** What is compared. */
export interface Scope {
  readonly collection: string;
  /** Only documents of this tenant. */
  readonly tenantId?: string | undefined;
}

/** The most documents of one step. */
const STEP = 500;

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
  const ours = scanAll(live, collection, scope.tenantId);
  const theirs = scanAll(rebuilt, collection, scope.tenantId);
  let [one, other] = [(await ours.next()).value, (await theirs.next()).value];
  let documents = 0;
  let suspects: Suspect[] = [];
  for (;;) {
    const comes = orderOf(one, other);
    const isInLive = comes <= 0;
    const found = isInLive ? one : other;
    if (found === undefined || documents >= STEP || suspects.length >= STEP) {
      yield { documents, suspects };
      [documents, suspects] = [0, []];
    }
    if (found === undefined) return;
    documents += isInLive ? 1 : 0;
    const { tenantId, key } = found;
    if (comes !== 0 || !isDeepStrictEqual(one?.document, other?.document))
      suspects.push({ tenantId, collection, key, seenIn: isInLive ? 'live' : 'rebuilt' });
    if (comes <= 0) one = (await ours.next()).value;
    if (comes >= 0) other = (await theirs.next()).value;
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
