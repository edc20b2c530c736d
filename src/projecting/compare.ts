import { isDeepStrictEqual } from 'node:util';
import type { Document, Projector } from '../../projections/projector';
import { yieldToEventLoop, monotonicMs, pause } from '../clock';
import type { Position } from '../event-log/event-log';
import { fault } from '../fault';
import { differences } from '../read-models/differences';
import type { DocumentKey, Generation, Snapshot, Suspect } from '../read-models/read-models';
import { parkedKey } from './fold-batch';

/** A document that is not the same in the live read model and in a replay of the log. */
export interface Difference extends DocumentKey {
  readonly kind: 'differs' | 'missing' | 'too_many';
  /** As it is in the live read model. */
  readonly live: Document | undefined;
  /** As it should be: from the replay. */
  readonly replayed: Document | undefined;
}

export interface Comparison {
  readonly documents: number;
  readonly differences: number;
}

export interface CompareOptions {
  /** Brings the replayed side exactly to a position. */
  readonly follow: (position: Position) => Promise<void>;
  readonly onDifference: (difference: Difference) => void;
  readonly onProgress?: (documents: number) => void;
  readonly tenantId?: string | undefined;
}

const TIMEOUT_MS = 30_000;
const LOOK_AGAIN_MS = 20;

const kindOf = (live: Document | undefined, replayed: Document | undefined): Difference['kind'] => {
  if (live === undefined) return 'missing';
  return replayed === undefined ? 'too_many' : 'differs';
};

/** The live documents of a moment that the replayed side has not yet passed. */
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
    await pause(LOOK_AGAIN_MS);
  }
};

/**
 * A tenant that waits in the live one, but not at the same event in the replay, is parked and not different. And one
 * that waits in the replay because events are missing from the log cannot be compared: the gap is what is wrong.
 */
const cannotCompare = (live: Document | undefined, replayed: Document | undefined): boolean =>
  live?.['event_id'] !== replayed?.['event_id'] &&
  (live !== undefined || replayed?.['cause'] === 'missing_events');

/**
 * Looks at suspects again, at one and the same position of the log: the live side gives its documents of one moment, the
 * replayed side is brought exactly there. So what differs then is wrong.
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
  const { documents: should } = await replayed.snapshot(keys);
  const at = suspects.length;
  const waiting = new Set(tenants.filter((_, i) => cannotCompare(documents[at + i], should[at + i])));
  return suspects.flatMap(({ seenIn, ...key }, i) => {
    const [is, ought] = [documents[i], should[i]];
    if (waiting.has(key.tenantId) || isDeepStrictEqual(is, ought)) return [];
    // What both sides have counts once: where it was seen in the live one.
    if (seenIn === 'rebuilt' && is !== undefined) return [];
    return [{ ...key, kind: kindOf(is, ought), live: is, replayed: ought }];
  });
};

/** Compares a read model with a replay of the log, document by document, while the live one moves on. */
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
