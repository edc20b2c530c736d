import { letOthersGo, threadMs } from '../clock';
import type { EventLog } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { emptyFold, foldingStream, tenantEventOf, type Fold } from './fold';
import { replyTail, type ReplyTail } from './reply-tail';
import type { KeptMark } from './replies';
import type { Snapshots } from './snapshots';

/** What decisions about a tenant are made on. */
export interface KnownTenant {
  readonly fold: Fold;
  /** It follows the stream by itself: it may be further than the fold. */
  readonly replies: ReplyTail;
}

interface Parts {
  readonly log: EventLog;
  readonly streams: Streams;
}

/** So long the thread is held at most before everything else that waits goes first. */
const HOLD_MS = 2;
const LOOK_EVERY = 16;

/** Lets others go when it has held the thread for long enough. */
const pacer = () => {
  let began = threadMs();
  let count = 0;
  return async (): Promise<void> => {
    count += 1;
    if (count % LOOK_EVERY !== 0 || threadMs() - began < HOLD_MS) return;
    await letOthersGo();
    began = threadMs();
  };
};

/** An event that something saved ends with. */
interface Place {
  readonly revision: number;
  readonly eventId: string;
}

/**
 * Reads on from where both the fold and the replies are, up to the head. What they rest on counts only if the log still
 * holds these events: undefined if it does not.
 */
const readOnFrom = async (
  tenantId: string,
  { fold, replies }: KnownTenant,
  { log, streams }: Parts,
  places: readonly Place[],
): Promise<Fold | undefined> => {
  const folding = foldingStream(fold, tenantId);
  const othersGo = pacer();
  let seen = 0;
  let revision = Math.min(fold.revision, replies.revision());
  if (places.some((place) => place.revision === revision)) revision -= 1;
  for await (const batch of log.readStream(streams.tenant(tenantId), revision))
    for (const logged of batch) {
      const here = places.filter((place) => place.revision === logged.revision);
      if (here.some(({ eventId }) => eventId !== logged.id)) return undefined;
      seen += here.length;
      const event = tenantEventOf(logged, revision, tenantId, streams);
      ({ revision } = logged);
      if (revision > folding.revision()) folding.take(logged, event);
      replies.take(event);
      await othersGo();
    }
  return seen === places.length ? folding.fold() : undefined;
};

/** Reads on up to the head. */
export const readOn = async (tenantId: string, known: KnownTenant, parts: Parts): Promise<Fold> =>
  (await readOnFrom(tenantId, known, parts, [])) ?? known.fold;

export interface LoadingParts extends Parts {
  readonly snapshots: Snapshots;
  /** What the replies rest on is gone: the tenant is to be loaded again. */
  readonly onLost: () => void;
}

export interface LoadedTenant {
  readonly known: KnownTenant;
  /** The revision of the snapshot that it was made from, or -1. */
  readonly snapshotAt: number;
}

/** From what was saved, and what came since; from the stream alone, if what was saved is of another history. */
export const loadedTenant = async (tenantId: string, parts: LoadingParts): Promise<LoadedTenant> => {
  const { streams, snapshots, onLost } = parts;
  const stream = streams.tenant(tenantId);
  const kept = snapshots.replies;
  const saved = await snapshots.load(stream);
  const mark = kept.mark(stream);
  const tail = (from?: KeptMark) => replyTail({ kept, stream, mark: from, onLost });

  const known = { fold: saved ?? emptyFold, replies: tail(mark) };
  const places = [saved, mark].filter((place) => place !== undefined);
  const fold = await readOnFrom(tenantId, known, parts, places);
  if (fold !== undefined) return { known: { ...known, fold }, snapshotAt: known.fold.revision };

  const afresh = { fold: emptyFold, replies: tail() };
  return { known: { ...afresh, fold: await readOn(tenantId, afresh, parts) }, snapshotAt: -1 };
};
