import { isDeepStrictEqual } from 'node:util';
import type { Document, Projector } from '../../projections/projector';
import { letOthersGo, monotonicMs, pause } from '../clock';
import type { Position } from '../event-log/event-log';
import { fault } from '../fault';
import type { DocumentKey, Generation, Scanned, Snapshot } from '../read-models/read-models';
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
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 20;

type Place = Pick<Scanned, 'tenantId' | 'key'>;
type From = { readonly tenantId: string; readonly key?: string } | undefined;

const orderOf = ({ tenantId, key }: Place): string => `${tenantId} ${key}`;

/** UTF-8 byte order, which is what the stores sort by. */
const isBefore = (a: Place, b: Place): boolean =>
  Buffer.compare(Buffer.from(orderOf(a)), Buffer.from(orderOf(b))) < 0;

const kindOf = (live: Document | undefined, replayed: Document | undefined): Difference['kind'] => {
  if (live === undefined) return 'missing';
  return replayed === undefined ? 'too_many' : 'differs';
};

/** How far both pages reach: what lies beyond waits for the next ones. */
const reachOf = (pages: readonly (readonly Scanned[])[]): Scanned | undefined =>
  pages
    .filter((page) => page.length === PAGE)
    .map((page) => page.at(-1) as Scanned)
    .reduce<Scanned | undefined>(
      (least, last) => (least === undefined || isBefore(last, least) ? last : least),
      undefined,
    );

/**
 * Compares two fillings of one projection document by document, while the live one moves on. What looks different is
 * looked at again: the live side gives its documents of one moment, the replayed side is brought exactly there. So a
 * difference is one, and memory stays flat.
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

  /** A tenant that waits in the live one, but not at the same event in the replay, is parked and not different. */
  const waitsOnlyLive = (is: Document | undefined, ought: Document | undefined): boolean =>
    is !== undefined && is['event_id'] !== ought?.['event_id'];

  const settle = async (suspects: readonly DocumentKey[]): Promise<void> => {
    const tenants = [...new Set(suspects.map(({ tenantId }) => tenantId))];
    const keys = [...suspects, ...tenants.map(parkedKey)];
    const snapshot = await liveSnapshot(keys);
    if (snapshot.control.to !== undefined) await options.follow(snapshot.control.to.position);
    const should = await replayed.load(keys);
    const pairs = keys.map((key, i) => ({ key, is: snapshot.documents[i], ought: should[i] }));
    const waiting = new Set(
      pairs
        .slice(suspects.length)
        .filter(({ is, ought }) => waitsOnlyLive(is, ought))
        .map(({ key }) => key.tenantId),
    );
    for (const { key, is, ought } of pairs.slice(0, suspects.length)) {
      if (waiting.has(key.tenantId) || isDeepStrictEqual(is, ought)) continue;
      differences += 1;
      options.onDifference({ ...key, kind: kindOf(is, ought), live: is, replayed: ought });
    }
  };

  const isWanted = ({ tenantId }: { tenantId: string }): boolean =>
    options.tenantId === undefined || tenantId === options.tenantId;

  /** Document by document; gives back how far both sides reach, if there is more. */
  const compareDocuments = async (collection: string, after: From): Promise<Place | undefined> => {
    const pages = [await live.scan(collection, PAGE, after), await replayed.scan(collection, PAGE, after)];
    const reach = reachOf(pages);
    const within = pages.map((page) =>
      page.filter((row) => isWanted(row) && (reach === undefined || !isBefore(reach, row))),
    );
    const should = new Map((within[1] ?? []).map((row) => [orderOf(row), row]));
    const suspects = new Map<string, Scanned>();
    for (const row of within[0] ?? []) {
      const other = should.get(orderOf(row));
      should.delete(orderOf(row));
      if (!isDeepStrictEqual(row.document, other?.document)) suspects.set(orderOf(row), row);
    }
    for (const row of should.values()) suspects.set(orderOf(row), row);
    documents += within[0]?.length ?? 0;
    if (suspects.size > 0)
      await settle([...suspects.values()].map(({ tenantId, key }) => ({ tenantId, collection, key })));
    return reach;
  };

  /** A stretch that has the same digest on both sides needs no look at its documents. */
  const compareStretch = async (collection: string, after: From): Promise<Place | undefined> => {
    if (options.tenantId !== undefined) return compareDocuments(collection, after);
    const is = await live.digest(collection, PAGE, after);
    const ought = await replayed.digest(collection, PAGE, after);
    if (is.digest !== ought.digest) return compareDocuments(collection, after);
    documents += is.documents;
    return is.documents < PAGE ? undefined : is.last;
  };

  const compareCollection = async (collection: string): Promise<void> => {
    let after: From = options.tenantId === undefined ? undefined : { tenantId: options.tenantId };
    do {
      const reach = await compareStretch(collection, after);
      after = reach !== undefined && isWanted(reach) ? reach : undefined;
      options.onProgress?.(documents);
      await letOthersGo();
    } while (after !== undefined);
  };

  for (const { name } of projector.collections) await compareCollection(name);
  return { documents, differences };
};
