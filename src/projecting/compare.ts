import { isDeepStrictEqual } from 'node:util';
import type { Document, ComposedProjector } from '../../projections/projector';
import { yieldToEventLoop } from '../async/clock';
import {
  isSameProgress,
  PROGRESS,
  rowsOf,
  type DocumentKey,
  type Progress,
  type ReadModelSet,
  type Scanned,
} from '../read-models/read-models';
import { retryDue } from './parked-tenants';
import type { TenantProjection } from './project-tenants';

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
const cannotCompare = (live: Progress | undefined, replayed: Progress | undefined): boolean =>
  live?.parked?.event_id !== replayed?.parked?.event_id &&
  (live?.parked !== undefined || replayed?.parked?.cause === 'missing_events');

/** Since when, and by which program, a tenant is parked is no matter of the log. */
const comparable = (collection: string, document: Document | undefined): Document | undefined => {
  const parked = collection === PROGRESS.name ? document?.['parked'] : undefined;
  if (parked === undefined) return document;
  return { ...document, parked: { ...parked, since: '', program: '', reason: '' } };
};

/** A document, and the progress of its tenant before and after it was read. */
const readAt = async ({ tenantId, collection, key }: DocumentKey, set: ReadModelSet) => {
  for (;;) {
    const [before] = await set.progress([tenantId]);
    const document = await set.get(tenantId, collection, key);
    const [progress] = await set.progress([tenantId]);
    if (isSameProgress(before, progress)) return { progress, document };
  }
};

/**
 * Compares a document again where both sets are equally far: it may have changed since it was scanned. The one that is
 * behind is projected to where the other one is, for this tenant only. If the document still differs, it is wrong.
 */
const differenceAt = async (
  key: DocumentKey,
  live: TenantProjection,
  replayed: TenantProjection,
): Promise<Difference | undefined> => {
  for (;;) {
    const [actual, correct] = [await readAt(key, live.set), await readAt(key, replayed.set)];
    const [one, other] = [actual.progress?.position ?? '', correct.progress?.position ?? ''];
    if (cannotCompare(actual.progress, correct.progress)) return undefined;
    const [found, expected] = [actual, correct].map(({ document }) => comparable(key.collection, document));
    if (isDeepStrictEqual(found, expected)) return undefined;
    const isReplayBehind = other <= one;
    const [behind, from, upTo] = isReplayBehind ? [replayed, other, one] : [live, one, other];
    // What parks it in the replay may have been set aside meanwhile.
    if (isReplayBehind) await retryDue(replayed);
    await behind.project(key.tenantId, upTo);
    const [now] = await behind.set.progress([key.tenantId]);
    if ((now?.position ?? '') === from)
      return { ...key, kind: kindOf(found, expected), live: found, replayed: expected };
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
  live: TenantProjection,
  replayed: TenantProjection,
  options: CompareOptions,
): Promise<Comparison> => {
  const { tenantId: only, onDifference, onDocuments = () => undefined, abort } = options;
  let [documents, differences] = [0, 0];
  for (const collection of [...collections.map(({ name }) => name), PROGRESS.name]) {
    const rows = merged(rowsOf(live.set, collection, only), rowsOf(replayed.set, collection, only));
    for await (const { tenantId, key, isLive, isSuspect } of rows) {
      documents += Number(isLive);
      const suspect = { tenantId, collection, key };
      const difference = isSuspect ? await differenceAt(suspect, live, replayed) : undefined;
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
