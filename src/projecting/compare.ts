import { isDeepStrictEqual } from 'node:util';
import type { Document, Projector } from '../../projections/projector';
import { yieldToEventLoop, monotonicMs, pause } from '../async/clock';
import type { Position } from '../event-log/event-log';
import { fault } from '../fault';
import { differences } from '../read-models/differences';
import type { DocumentKey, Generation, Snapshot, Suspect } from '../read-models/read-models';
import { parkedKey } from './parked-tenants';
import { POLL_MS } from './progress';

/** A document that differs between the live read model and a replay of the log. */
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
  /** Advances the replayed side to exactly this position. */
  readonly follow: (position: Position) => Promise<void>;
  readonly onDifference: (difference: Difference) => void;
  readonly onProgress?: (documents: number) => void;
  readonly tenantId?: string | undefined;
}

const TIMEOUT_MS = 30_000;

const kindOf = (live: Document | undefined, replayed: Document | undefined): Difference['kind'] => {
  if (live === undefined) return 'missing';
  return replayed === undefined ? 'too_many' : 'differs';
};

/** A snapshot of the live documents at a moment that the replayed side has not passed yet. */
const liveSnapshot = async (
  live: Generation,
  reached: Position,
  keys: readonly DocumentKey[],
): Promise<Snapshot> => {
  const end = monotonicMs() + TIMEOUT_MS;
  for (;;) {
    const snapshot = await live.snapshot(keys);
    if ((snapshot.control.to?.position ?? '') >= reached) return snapshot;
    if (monotonicMs() > end)
      throw fault(
        'read_models_unavailable',
        'The live read model is not advancing. Is any process projecting it?',
      );
    await pause(POLL_MS);
  }
};

/**
 * A tenant parked in the live generation, but not at the same event in the replay, is reported as parked, not as
 * different. One parked in the replay by missing events cannot be compared either: the problem is the gap.
 */
const cannotCompare = (live: Document | undefined, replayed: Document | undefined): boolean =>
  live?.['event_id'] !== replayed?.['event_id'] &&
  (live !== undefined || replayed?.['cause'] === 'missing_events');

/**
 * Compares suspects again at one position of the log: takes a snapshot of the live documents and advances the replayed
 * side to exactly that position. Whatever still differs is wrong.
 */
const examine = async (
  suspects: readonly Suspect[],
  live: Generation,
  replayed: Generation,
  follow: CompareOptions['follow'],
): Promise<readonly Difference[]> => {
  if (suspects.length === 0) return [];
  const tenants = [...new Set(suspects.map(({ tenantId }) => tenantId))];
  const keys = [...suspects, ...tenants.map(parkedKey)];
  const reached = (await replayed.control()).to?.position ?? '';
  const { control, documents } = await liveSnapshot(live, reached, keys);
  if (control.to !== undefined) await follow(control.to.position);
  const { documents: expected } = await replayed.snapshot(keys);
  const at = suspects.length;
  const skipped = new Set(tenants.filter((_, i) => cannotCompare(documents[at + i], expected[at + i])));
  return suspects.flatMap(({ seenIn, ...key }, i) => {
    const [actual, correct] = [documents[i], expected[i]];
    if (skipped.has(key.tenantId) || isDeepStrictEqual(actual, correct)) return [];
    // A document that both sides have is reported once, by its suspect from the live side.
    if (seenIn === 'rebuilt' && actual !== undefined) return [];
    return [{ ...key, kind: kindOf(actual, correct), live: actual, replayed: correct }];
  });
};

/** Compares a read model with a replay of the log, document by document, while the live one keeps advancing. */
export const compare = async (
  projector: Projector,
  live: Generation,
  replayed: Generation,
  options: CompareOptions,
): Promise<Comparison> => {
  const { tenantId, follow, onDifference, onProgress } = options;
  let [documents, found] = [0, 0];
  for (const { name: collection } of projector.collections)
    for await (const step of differences(live, replayed, { collection, tenantId })) {
      for (const difference of await examine(step.suspects, live, replayed, follow)) {
        found += 1;
        onDifference(difference);
      }
      documents += step.documents;
      onProgress?.(documents);
      await yieldToEventLoop();
    }
  return { documents, differences: found };
};
