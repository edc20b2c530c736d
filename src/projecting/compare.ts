import { isDeepStrictEqual } from 'node:util';
import { PROGRESS, type Document, type ComposedProjector } from '../../projections/projector';
import { yieldToEventLoop } from '../async/clock';
import type { Position } from '../event-log/event-log';
import {
  isSameProgress,
  rowsOf,
  type DocumentKey,
  type Progress,
  type Scanned,
} from '../read-models/read-models';
import { retryDue } from './parked-tenants';
import type { ProgressOf, TenantProjection } from './project-tenants';
import { NOTHING_SHOWN, showGroup } from './show-tenants';

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

/** Documents of a set, and the progress of their tenants, without those that moved while they were read. */
const readAll = async (keys: readonly DocumentKey[], { set }: TenantProjection) => {
  const tenantIds = [...new Set(keys.map(({ tenantId }) => tenantId))];
  const before = await set.progress(tenantIds);
  const documents = await set.load(keys);
  const after = await set.progress(tenantIds);
  const unmoved = tenantIds.flatMap((tenantId, i) =>
    isSameProgress(before[i], after[i]) ? [[tenantId, after[i]] as const] : [],
  );
  return { documents, progress: new Map(unmoved) };
};

/** The two sets that are compared. */
interface Sides {
  readonly live: TenantProjection;
  readonly replayed: TenantProjection;
}

/** Projects a tenant to where it is wanted. Whether that has moved it, or another process is about to. */
const advanceTo = async (
  projection: TenantProjection,
  tenantId: string,
  from: Position,
  wanted: Position,
): Promise<boolean> => {
  if (wanted <= from) return false;
  const shown = await showGroup(projection, new Map([[tenantId, wanted]]));
  const { outcome, position } = (shown === 'superseded' ? undefined : shown.get(tenantId)) ?? NOTHING_SHOWN;
  return outcome === 'overtaken' || position > from;
};

/** Projects each tenant where it is behind to where the other set is. Whether that has moved one of them. */
const catchUp = async ({ live, replayed }: Sides, shown: ProgressOf): Promise<boolean> => {
  let isMoved = false;
  const replay = await replayed.progress([...shown.keys()]);
  for (const [tenantId, progress] of shown) {
    const actual = progress?.position ?? '';
    const correct = replay.get(tenantId)?.position ?? '';
    if (await advanceTo(replayed, tenantId, correct, actual)) isMoved = true;
    if (await advanceTo(live, tenantId, actual, correct)) isMoved = true;
  }
  return isMoved;
};

/**
 * Compares documents again, each where both sets are equally far: it may have changed since it was scanned. What differs
 * there, or where a set gets no further, is wrong.
 */
const differencesAmong = async (
  suspects: readonly DocumentKey[],
  sides: Sides,
): Promise<readonly Difference[]> => {
  const found: Difference[] = [];
  for (let left = suspects; left.length > 0;) {
    const actual = await readAll(left, sides.live);
    // What parks a tenant in the replay may have been set aside meanwhile.
    await retryDue(sides.replayed);
    const isMoved = await catchUp(sides, actual.progress);
    const correct = await readAll(left, sides.replayed);
    left = left.filter((key, i) => {
      const { tenantId, collection } = key;
      if (!actual.progress.has(tenantId)) return true;
      const one = actual.progress.get(tenantId);
      const other = correct.progress.get(tenantId);
      if (cannotCompare(one, other)) return false;
      const shown = comparable(collection, actual.documents[i]);
      const expected = comparable(collection, correct.documents[i]);
      if (isDeepStrictEqual(shown, expected)) return false;
      if (isMoved && one?.position !== other?.position) return true;
      found.push({ ...key, kind: kindOf(shown, expected), live: shown, replayed: expected });
      return false;
    });
  }
  return found;
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
  let one = (await live.next()).value;
  let other = (await replayed.next()).value;
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
  let documents = 0;
  let differences = 0;
  let suspects: DocumentKey[] = [];
  const judge = async (): Promise<void> => {
    for (const difference of await differencesAmong(suspects, { live, replayed })) {
      differences += 1;
      onDifference(difference);
    }
    suspects = [];
    onDocuments(documents);
    await yieldToEventLoop();
    abort?.throwIfAborted();
  };
  for (const collection of [...collections.map(({ name }) => name), PROGRESS.name]) {
    const rows = merged(rowsOf(live.set, collection, only), rowsOf(replayed.set, collection, only));
    let scanned = 0;
    for await (const { tenantId, key, isLive, isSuspect } of rows) {
      documents += Number(isLive);
      if (isSuspect) suspects.push({ tenantId, collection, key });
      if ((scanned += 1) % PART === 0) await judge();
    }
    await judge();
  }
  return { documents, differences };
};
