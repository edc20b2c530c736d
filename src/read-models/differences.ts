import { isDeepStrictEqual } from 'node:util';
import type { Compared, Generation, Scanned, Scanner, Suspect } from './read-models';
import { scanAll } from './scanning';

export interface Scope {
  readonly collection: string;
  /** Only documents of this tenant. */
  readonly tenantId?: string | undefined;
}

/** Documents per step. */
const MAX_STEP = 500;

/** By UTF-8 bytes, as `scan` orders them. */
const order = (one: string, other: string): number =>
  one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));

/** Negative: `live` comes first. Undefined comes last. */
const orderOf = (live: Scanned | undefined, rebuilt: Scanned | undefined): number => {
  if (live === undefined || rebuilt === undefined) return live === undefined ? 1 : -1;
  return order(live.tenantId, rebuilt.tenantId) || order(live.key, rebuilt.key);
};

/** Merges both scans by tenant and key. Works for any two stores. */
async function* orderedDifferences(live: Scanner, rebuilt: Scanner, scope: Scope): AsyncGenerator<Compared> {
  const { collection } = scope;
  const liveScan = scanAll(live, collection, scope.tenantId);
  const rebuiltScan = scanAll(rebuilt, collection, scope.tenantId);
  let [one, other] = [(await liveScan.next()).value, (await rebuiltScan.next()).value];
  let documents = 0;
  let suspects: Suspect[] = [];
  for (;;) {
    const comparison = orderOf(one, other);
    const isInLive = comparison <= 0;
    const found = isInLive ? one : other;
    if (found === undefined || documents >= MAX_STEP || suspects.length >= MAX_STEP) {
      yield { documents, suspects };
      [documents, suspects] = [0, []];
    }
    if (found === undefined) return;
    documents += isInLive ? 1 : 0;
    const { tenantId, key } = found;
    if (comparison !== 0 || !isDeepStrictEqual(one?.document, other?.document))
      suspects.push({ tenantId, collection, key, seenIn: isInLive ? 'live' : 'rebuilt' });
    if (comparison <= 0) one = (await liveScan.next()).value;
    if (comparison >= 0) other = (await rebuiltScan.next()).value;
  }
}

/**
 * Finds, step by step, the documents that may differ between two generations, both of which may change in the meantime. A
 * document that differs throughout is among the suspects. Not every suspect differs: it may be equal but stored
 * differently, or have changed since.
 */
export const differences = (live: Generation, rebuilt: Generation, scope: Scope): AsyncIterable<Compared> =>
  (scope.tenantId === undefined ? live.ownDifferences?.(rebuilt, scope.collection) : undefined) ??
  orderedDifferences(live.reader, rebuilt.reader, scope);
