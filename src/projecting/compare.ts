import { isDeepStrictEqual } from 'node:util';
import type { Document, Projector } from '../../projections/projector';
import { letOthersGo, monotonicMs, pause } from '../clock';
import type { Position } from '../event-log/event-log';
import { fault } from '../fault';
import type { DocumentKey, Generation, Lying, Place, Scanned, Snapshot } from '../read-models/read-models';
import { parkedKey } from './fold-batch';

/** A document of which one side has another idea than the other. */
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
  readonly tenantId?: string;
}

const PAGE = 500;
const LONG_STRETCH = 5_000;
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 20;

/** How far it went, and whether nothing there had to be looked at closely. */
interface Walked {
  readonly cutAt: Place | undefined;
  readonly isSame: boolean;
}

const nameOf = ({ tenantId, key }: Scanned): string => `${tenantId} ${key}`;

const kindOf = (live: Document | undefined, replayed: Document | undefined): Difference['kind'] => {
  if (live === undefined) return 'missing';
  return replayed === undefined ? 'too_many' : 'differs';
};

/**
 * Compares two fillings of one projection document by document, while the live one moves on. What looks different is
 * looked at again: the live side gives its documents of one moment, the replayed side is brought exactly there. So a
 * difference is one, and memory stays flat. Both are walked as their documents lie, from one border of the live one to
 * the next: what lies elsewhere in the other one is looked for by its key.
 */
export const compare = async (
  projector: Projector,
  live: Generation,
  replayed: Generation,
  options: CompareOptions,
): Promise<Comparison> => {
  let documents = 0;
  let differences = 0;

  /** The live documents of a moment that the replayed side has not yet passed. */
  const liveSnapshot = async (suspects: readonly DocumentKey[]): Promise<Snapshot> => {
    const end = monotonicMs() + PATIENCE_MS;
    const reached = (await replayed.control()).to?.position ?? '';
    for (;;) {
      const snapshot = await live.snapshot(suspects);
      if ((snapshot.control.to?.position ?? '') >= reached) return snapshot;
      if (monotonicMs() > end)
        throw fault(
          'read_models_unavailable',
          'The live read model does not move on: does anybody project it?',
        );
      await pause(LOOK_AGAIN_MS);
    }
  };

  /**
   * A tenant that waits in the live one, but not at the same event in the replay, is parked and not different. And one
   * that waits in the replay because events are missing from the log cannot be compared: the gap is what is wrong.
   */
  const cannotCompare = (is: Document | undefined, ought: Document | undefined): boolean =>
    is?.['event_id'] !== ought?.['event_id'] && (is !== undefined || ought?.['cause'] === 'missing_events');

  /** What a document that is there on both sides is like is asked where the live one has it. */
  const settle = async (
    collection: string,
    rows: Iterable<Scanned>,
    foundIn: 'live' | 'replayed',
  ): Promise<void> => {
    const suspects = Array.from(rows, ({ tenantId, key }) => ({ tenantId, collection, key }));
    if (suspects.length === 0) return;
    const tenants = [...new Set(suspects.map(({ tenantId }) => tenantId))];
    const keys = [...suspects, ...tenants.map(parkedKey)];
    const snapshot = await liveSnapshot(keys);
    if (snapshot.control.to !== undefined) await options.follow(snapshot.control.to.position);
    const should = await replayed.load(keys);
    const pairs = keys.map((key, i) => ({ key, is: snapshot.documents[i], ought: should[i] }));
    const waiting = new Set(
      pairs
        .slice(suspects.length)
        .filter(({ is, ought }) => cannotCompare(is, ought))
        .map(({ key }) => key.tenantId),
    );
    for (const { key, is, ought } of pairs.slice(0, suspects.length)) {
      if (waiting.has(key.tenantId) || isDeepStrictEqual(is, ought)) continue;
      if (foundIn === 'replayed' && is !== undefined) continue;
      differences += 1;
      options.onDifference({ ...key, kind: kindOf(is, ought), live: is, replayed: ought });
    }
  };

  const { tenantId } = options;

  /** Document by document, up to where the live side is cut. */
  const compareDocuments = async (
    collection: string,
    after: Place | undefined,
  ): Promise<Place | undefined> => {
    const own = await live.lying(collection, { limit: PAGE, after, tenantId });
    const left = new Map(own.documents.map((row) => [nameOf(row), row]));
    let from = after;
    do {
      const page: Lying = await replayed.lying(collection, {
        limit: PAGE,
        after: from,
        upTo: own.cutAt,
        tenantId,
      });
      const elsewhere = page.documents.filter((row) => !left.has(nameOf(row)));
      for (const row of page.documents)
        if (isDeepStrictEqual(left.get(nameOf(row))?.document, row.document)) left.delete(nameOf(row));
      await settle(collection, elsewhere, 'replayed');
      from = page.cutAt;
    } while (from !== undefined);
    await settle(collection, left.values(), 'live');
    documents += own.documents.length;
    return own.cutAt;
  };

  /** A stretch that is the same on both sides needs no look at its documents. */
  const compareStretch = async (
    collection: string,
    limit: number,
    after: Place | undefined,
  ): Promise<Walked> => {
    const { isSame, cutAt, ...found } = await live.matches(replayed, collection, { limit, after });
    if (!isSame) return { cutAt: await compareDocuments(collection, after), isSame };
    documents += found.documents;
    return { cutAt, isSame };
  };

  /** Where nothing differs the next stretch may be long. One tenant's documents are looked at one by one. */
  const compareCollection = async (collection: string): Promise<void> => {
    let [after, limit]: [Place | undefined, number] = [undefined, PAGE];
    do {
      const { cutAt, isSame }: Walked =
        tenantId === undefined
          ? await compareStretch(collection, limit, after)
          : { cutAt: await compareDocuments(collection, after), isSame: false };
      [after, limit] = [cutAt, isSame ? LONG_STRETCH : PAGE];
      options.onProgress?.(documents);
      await letOthersGo();
    } while (after !== undefined);
  };

  for (const { name } of projector.collections) await compareCollection(name);
  return { documents, differences };
};
