import { boundedCache, type BoundedCache } from '../bounded-cache';
import { beforeDeadline, threadMs, yieldToEventLoop } from '../clock';
import type { Recorded, TenantEvent } from '../domain/events';
import { logFault, type EventLog } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import type { Streams } from '../event-log/streams';
import { codeOf, messageOf, moreOf } from '../fault';
import {
  bytesOf,
  emptyFold,
  foldingStream,
  tenantEventOf,
  unreadable,
  type Fold,
  type UnreadableTenant,
} from './fold';
import { replyTail, type KeptMark, type ReplyTail } from './replies';
import type { Snapshots } from './snapshots';

/** What decisions about a tenant are made on. */
export interface KnownTenant {
  readonly fold: Fold;
  /** It follows the stream by itself: it may be further than the fold. */
  readonly replies: ReplyTail;
}

/** The folded tenants of this process: cached by revision, snapshotted now and then. */
export interface Folds {
  /** What this process has in memory; perhaps others have written since. Never reads anything. */
  peek(tenantId: string): Fold | undefined;
  /** What this process knows; perhaps others have written since. */
  known(tenantId: string, deadline: number): Promise<KnownTenant>;
  /** Read up to the head of the stream. A long read that misses its deadline goes on for those who come later. */
  atHead(tenantId: string, deadline: number): Promise<KnownTenant>;
  /** Takes in what this process has just appended to the given fold. Gives the fold right after that, whatever came since. */
  advance(tenantId: string, known: KnownTenant, appended: readonly Recorded<TenantEvent>[]): Fold;
  /** The tenants whose streams could not be read, with the reason, as last seen. */
  unreadable(): readonly UnreadableTenant[];
}

/** The longest that the thread is held before yielding to everything else that waits. */
const HOLD_MS = 2;
const LOOK_EVERY = 16;

/** Lets others go when it has held the thread for long enough. */
const pacer = () => {
  let began = threadMs();
  let count = 0;
  return async (): Promise<void> => {
    count += 1;
    if (count % LOOK_EVERY !== 0 || threadMs() - began < HOLD_MS) return;
    await yieldToEventLoop();
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
  { log, streams }: LedgerLog,
  places: readonly Place[],
): Promise<Fold | undefined> => {
  const folding = foldingStream(fold, tenantId);
  const yieldWhenDue = pacer();
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
      if (revision > folding.revision()) folding.take(event);
      replies.take(event);
      await yieldWhenDue();
    }
  return seen === places.length ? folding.fold() : undefined;
};

/** Reads on up to the head. */
const readOn = async (tenantId: string, known: KnownTenant, parts: LedgerLog): Promise<Fold> =>
  (await readOnFrom(tenantId, known, parts, [])) ?? known.fold;

interface LoadingParts extends LedgerLog {
  readonly snapshots: Snapshots;
  /** What the replies rest on is gone: the tenant is to be loaded again. */
  readonly onLost: () => void;
}

interface LoadedTenant {
  readonly known: KnownTenant;
  /** The revision of the snapshot that it was made from, or -1. */
  readonly snapshotAt: number;
}

/** From what was saved, and what came since; from the stream alone, if what was saved is of another history. */
const loadedTenant = async (tenantId: string, parts: LoadingParts): Promise<LoadedTenant> => {
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

/** Again from the head of the stream as long as it has changed under the work. */
export const untilUnchanged = async <T>(work: (fresh: boolean) => Promise<T>): Promise<T> => {
  for (let fresh = false; ; fresh = true)
    try {
      return await work(fresh);
    } catch (error) {
      if (codeOf(error) !== 'stream_changed') throw error;
    }
};

/** Of all the folds that are kept, roughly: the least recently used are dropped first. */
const MAX_BYTES = 64 * 1_048_576;

/** After how many events a snapshot is worth its price; after more when the fold is large. */
const snapshotEvery = (fold: Fold): number => Math.max(500, Math.floor(bytesOf(fold) / 2_000));

const slow = () => logFault('log_unavailable', 'The history of this tenant is still being read.');

interface Cached {
  readonly known: KnownTenant;
  readonly snapshotAt: number;
  readonly bytes: number;
}

interface FoldCache extends LedgerLog {
  readonly snapshots: Snapshots;
  /** The least recently used first. */
  readonly tenants: BoundedCache<Cached>;
  /** Those that could not be read. */
  readonly broken: Map<string, UnreadableTenant>;
  readonly loading: Map<string, Promise<KnownTenant>>;
}

/** Gives the later one of this and what is cached. */
const keep = (cache: FoldCache, tenantId: string, known: KnownTenant, loadedAt?: number): KnownTenant => {
  const { fold, replies } = known;
  const before = cache.tenants.get(tenantId);
  if (before !== undefined && before.known.fold.revision > fold.revision) return before.known;
  if (fold.revision < 0) return known;
  const snapshotAt = loadedAt ?? before?.snapshotAt ?? fold.revision;
  const isDue = fold.revision - snapshotAt >= snapshotEvery(fold);
  if (isDue) void cache.snapshots.save(cache.streams.tenant(tenantId), fold);
  replies.flush();
  const bytes = bytesOf(fold) + replies.bytes();
  cache.tenants.put(tenantId, { known, snapshotAt: isDue ? fold.revision : snapshotAt, bytes });
  return known;
};

/** Whatever is known of a stream that cannot be read is not decided on. */
const reading = async <T>(cache: FoldCache, tenantId: string, work: () => Promise<T>): Promise<T> => {
  try {
    const result = await work();
    cache.broken.delete(tenantId);
    return result;
  } catch (thrown) {
    // The store has removed events of the stream, or all of it, and waiting does not bring them back.
    const isLost = codeOf(thrown) === 'history_missing';
    const error = isLost ? unreadable(tenantId, undefined, messageOf(thrown)) : thrown;
    if (codeOf(error) === 'tenant_unreadable') {
      cache.tenants.delete(tenantId);
      cache.broken.set(tenantId, moreOf(error) as unknown as UnreadableTenant);
    }
    throw error;
  }
};

/** Whoever comes while a tenant is being loaded waits for the same load. */
const load = (cache: FoldCache, tenantId: string): Promise<KnownTenant> => {
  const { loading } = cache;
  const begin = async (): Promise<KnownTenant> => {
    const parts = { ...cache, onLost: () => cache.tenants.delete(tenantId) };
    const { known, snapshotAt } = await reading(cache, tenantId, () => loadedTenant(tenantId, parts));
    return keep(cache, tenantId, known, snapshotAt);
  };
  const begun = loading.get(tenantId) ?? begin().finally(() => loading.delete(tenantId));
  loading.set(tenantId, begun);
  return begun;
};

/** A load may have begun earlier: what came since is read after it. It goes on from what it gave, cached or not. */
const catchUp = async (cache: FoldCache, tenantId: string): Promise<KnownTenant> => {
  const known = cache.tenants.get(tenantId)?.known ?? (await load(cache, tenantId));
  const fold = await reading(cache, tenantId, () => readOn(tenantId, known, cache));
  return keep(cache, tenantId, { fold, replies: known.replies });
};

export const cachedFolds = (
  log: EventLog,
  snapshots: Snapshots,
  streams: Streams,
  maxBytes = MAX_BYTES,
): Folds => {
  const tenants = boundedCache<Cached>(maxBytes, ({ bytes }) => bytes);
  const broken = new Map<string, UnreadableTenant>();
  const cache: FoldCache = { log, snapshots, streams, tenants, broken, loading: new Map() };
  return {
    peek: (tenantId) => tenants.get(tenantId)?.known.fold,
    known: async (tenantId, deadline) => {
      const entry = tenants.get(tenantId);
      if (entry === undefined) return beforeDeadline(load(cache, tenantId), deadline, slow);
      tenants.put(tenantId, entry);
      return entry.known;
    },
    atHead: (tenantId, deadline) => beforeDeadline(catchUp(cache, tenantId), deadline, slow),
    advance: (tenantId, { fold, replies }, appended) => {
      const folding = foldingStream(fold, tenantId);
      for (const event of appended) {
        folding.take(event);
        replies.take(event);
      }
      const advanced = folding.fold();
      keep(cache, tenantId, { fold: advanced, replies });
      return advanced;
    },
    unreadable: () => [...broken.values()],
  };
};
