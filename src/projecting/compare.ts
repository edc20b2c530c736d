import { isDeepStrictEqual } from 'node:util';
import type { Document } from '../../projections/projector';
import { monotonicMs } from '../async/clock';
import type { Position } from '../event-log/event-log';
import { fault } from '../fault';
import {
  PARKED,
  type Control,
  type DocumentKey,
  type ReadModelSet,
  type Scanned,
} from '../read-models/read-models';
import type { ComposedProjector } from './compose';
import { parkedKey } from './parked-tenants';
import { rowsOf } from './scanning';

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
  /** Runs now and then, with the number of documents compared so far. */
  readonly between: (documents: number) => Promise<void>;
  readonly tenantId?: string | undefined;
}

const TIMEOUT_MS = 30_000;
/** The documents that are looked up at one position: few, so that a busy set stands still for long enough. */
const MAX_LOOKED_UP = 100;
const PART = 500;

const kindOf = (live: Document | undefined, replayed: Document | undefined): Difference['kind'] => {
  if (live === undefined) return 'missing';
  return replayed === undefined ? 'too_many' : 'differs';
};

const documentsOf = (set: ReadModelSet, keys: readonly DocumentKey[]) =>
  Promise.all(keys.map(({ tenantId, collection, key }) => set.get(tenantId, collection, key)));

/** Documents of a set as they are together at one position. */
const documentsAtOnce = async (
  set: ReadModelSet,
  keys: readonly DocumentKey[],
): Promise<{ readonly control: Control; readonly documents: readonly (Document | undefined)[] }> => {
  const end = monotonicMs() + TIMEOUT_MS;
  for (;;) {
    const control = await set.control();
    const documents = await documentsOf(set, keys);
    if ((await set.control()).n === control.n) return { control, documents };
    if (monotonicMs() > end)
      throw fault(
        'read_models_unavailable',
        `The read models changed whenever they were compared, for ${TIMEOUT_MS / 1_000} s.`,
      );
  }
};

/**
 * A tenant parked in the live set, but not at the same event in the replay, is reported as parked, not as different.
 * One parked in the replay by missing events cannot be compared either: the problem is the gap.
 */
const cannotCompare = (live: Document | undefined, replayed: Document | undefined): boolean =>
  live?.['event_id'] !== replayed?.['event_id'] &&
  (live !== undefined || replayed?.['cause'] === 'missing_events');

/**
 * Compares documents again at one position of the log, to which the replayed set is advanced. Whatever still differs is
 * wrong.
 */
const examine = async (
  suspects: readonly DocumentKey[],
  live: ReadModelSet,
  replayed: ReadModelSet,
  follow: CompareOptions['follow'],
): Promise<readonly Difference[]> => {
  const tenants = [...new Set(suspects.map(({ tenantId }) => tenantId))];
  const keys = [...suspects, ...tenants.map(parkedKey)];
  const { control, documents } = await documentsAtOnce(live, keys);
  if (control.to !== undefined) await follow(control.to.position);
  const expected = await documentsOf(replayed, keys);
  const at = suspects.length;
  const skipped = new Set(tenants.filter((_, i) => cannotCompare(documents[at + i], expected[at + i])));
  return suspects.flatMap((key, i) => {
    const [actual, correct] = [documents[i], expected[i]];
    if (skipped.has(key.tenantId) || isDeepStrictEqual(actual, correct)) return [];
    return [{ ...key, kind: kindOf(actual, correct), live: actual, replayed: correct }];
  });
};

/** By UTF-8 bytes, as `scan` orders them. */
const orderOfTexts = (one: string, other: string): number =>
  one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));

/** Negative: the first one comes first. Undefined comes last. */
const orderOf = (one: Scanned | undefined, other: Scanned | undefined): number => {
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1;
  return orderOfTexts(one.tenantId, other.tenantId) || orderOfTexts(one.key, other.key);
};

/** Text that is not JSON equals nothing else. */
const areEqual = (one: string, other: string): boolean => {
  if (one === other) return true;
  try {
    return isDeepStrictEqual(JSON.parse(one), JSON.parse(other));
  } catch {
    return false;
  }
};

type Rows = AsyncGenerator<Scanned, undefined>;

/** Merges the documents of two sets. One that differs throughout is a suspect; a suspect may have changed since. */
async function* merged(live: Rows, replayed: Rows) {
  let [one, other] = [(await live.next()).value, (await replayed.next()).value];
  for (let row = one ?? other; row !== undefined; row = one ?? other) {
    const order = orderOf(one, other);
    const found = order <= 0 ? one : other;
    const isSuspect = order !== 0 || !areEqual(one?.text ?? '', other?.text ?? '');
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
  const { tenantId: only, follow, onDifference, between } = options;
  let [documents, found] = [0, 0];
  let suspects: DocumentKey[] = [];
  const examineAll = async (): Promise<void> => {
    for (const difference of await examine(suspects, live, replayed, follow)) {
      found += 1;
      onDifference(difference);
    }
    suspects = [];
  };
  for (const { name: collection } of collections.filter(({ name }) => name !== PARKED)) {
    const rows = merged(rowsOf(live, collection, only), rowsOf(replayed, collection, only));
    for await (const { tenantId, key, isLive, isSuspect } of rows) {
      documents += Number(isLive);
      if (isSuspect) suspects.push({ tenantId, collection, key });
      if (suspects.length === MAX_LOOKED_UP) await examineAll();
      if (documents % PART === 0) await between(documents);
    }
  }
  if (suspects.length > 0) await examineAll();
  await between(documents);
  return { documents, differences: found };
};
