import { isDeepStrictEqual } from 'node:util';
import type { Document, ComposedProjector } from '../../projections/projector';
import { yieldToEventLoop } from '../async/clock';
import type { Position } from '../event-log/event-log';
import {
  STREAMS,
  rowsOf,
  type DocumentKey,
  type ReadModelSet,
  type Scanned,
} from '../read-models/read-models';
import type { ParkedTenant } from './fold-batch';
import { findParked } from './parked-tenants';

/** A document that differs between the live set and a replay of the log. */
export interface Difference extends DocumentKey {
  readonly kind: 'differs' | 'missing' | 'too_many';
  readonly live: Document | undefined;
  /** The correct one. */
  readonly replayed: Document | undefined;
}

export interface Comparison {
  readonly documents: number;
  readonly differences: number;
}

export interface CompareOptions {
  /** Advances the replayed set, which is not ahead of the live one, to exactly this position. */
  readonly follow: (position: Position) => Promise<void>;
  readonly onDifference: (difference: Difference) => void;
  /** Called now and then with the number of documents compared so far. */
  readonly onDocuments?: (documents: number) => void;
  readonly tenantId?: string | undefined;
  readonly abort?: AbortSignal | undefined;
}

const PART = 500;

const kindOf = (live: Document | undefined, replayed: Document | undefined): Difference['kind'] => {
  if (live === undefined) return 'missing';
  return replayed === undefined ? 'too_many' : 'differs';
};

/**
 * A tenant parked in the live set, but not at the same event in the replay, is reported as parked, not as different.
 * One parked in the replay by missing events cannot be compared either: the problem is the gap.
 */
const cannotCompare = (live: ParkedTenant | undefined, replayed: ParkedTenant | undefined): boolean =>
  live?.event_id !== replayed?.event_id && (live !== undefined || replayed?.cause === 'missing_events');

const readAt = ({ tenantId, collection, key }: DocumentKey, set: ReadModelSet) =>
  Promise.all([set.get(tenantId, collection, key), findParked(set, tenantId)]);

/**
 * Compares a document again at one position of the log, to which the replayed set is advanced: it may have changed since
 * it was scanned. If it still differs, it is wrong.
 */
const differenceAt = async (
  key: DocumentKey,
  live: ReadModelSet,
  replayed: ReadModelSet,
  follow: CompareOptions['follow'],
): Promise<Difference | undefined> => {
  for (;;) {
    const { n, to } = await live.control();
    const [actual, parked] = await readAt(key, live);
    if ((await live.control()).n !== n) continue;
    if (to !== undefined) await follow(to.position);
    const [correct, parkedToo] = await readAt(key, replayed);
    if (isDeepStrictEqual(actual, correct) || cannotCompare(parked, parkedToo)) return undefined;
    return { ...key, kind: kindOf(actual, correct), live: actual, replayed: correct };
  }
};

/** By UTF-8 bytes, as `scan` orders them. */
const orderOfTexts = (one: string, other: string): number =>
  one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));

/** Negative: the first one comes first. Undefined comes last. */
const orderOf = (one: Scanned | undefined, other: Scanned | undefined): number => {
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1;
  return orderOfTexts(one.tenantId, other.tenantId) || orderOfTexts(one.key, other.key);
};

const areEqual = (one: string, other: string): boolean =>
  one === other || isDeepStrictEqual(JSON.parse(one), JSON.parse(other));

/** Merges the documents of two sets. Those that differ are suspects. */
async function* merged(live: AsyncGenerator<Scanned, undefined>, replayed: typeof live) {
  let [one, other] = [(await live.next()).value, (await replayed.next()).value];
  for (let row = one ?? other; row !== undefined; row = one ?? other) {
    const order = orderOf(one, other);
    const found = order <= 0 ? one : other;
    const isSuspect = order !== 0 || !areEqual(one?.text ?? '{}', other?.text ?? '{}');
    yield { ...(found ?? row), isLive: order <= 0, isSuspect };
    if (order <= 0) one = (await live.next()).value;
    if (order >= 0) other = (await replayed.next()).value;
  }
}

/** Compares a set with a replay of the log, document by document, while it keeps advancing. */
export const compare = async (
  { collections }: ComposedProjector,
  live: ReadModelSet,
  replayed: ReadModelSet,
  options: CompareOptions,
): Promise<Comparison> => {
  const { tenantId: only, follow, onDifference, onDocuments = () => undefined, abort } = options;
  let [documents, differences] = [0, 0];
  for (const collection of [...collections.map(({ name }) => name), STREAMS]) {
    const rows = merged(rowsOf(live, collection, only), rowsOf(replayed, collection, only));
    for await (const { tenantId, key, isLive, isSuspect } of rows) {
      documents += Number(isLive);
      const suspect = { tenantId, collection, key };
      const difference = isSuspect ? await differenceAt(suspect, live, replayed, follow) : undefined;
      if (difference !== undefined) {
        differences += 1;
        onDifference(difference);
      }
      if (documents % PART !== 0) continue;
      onDocuments(documents);
      await yieldToEventLoop();
      abort?.throwIfAborted();
    }
  }
  onDocuments(documents);
  return { documents, differences };
};
