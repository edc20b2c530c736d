import { boundedCache, type BoundedCache } from '../bounded-cache';
import { beforeDeadline, threadMs, yieldToEventLoop } from '../async/clock';
import type { Recorded, TenantEvent } from '../domain/events';
import { logFault, type EventLog } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import type { Streams } from '../event-log/streams';
import { codeOf, messageOf, moreOf } from '../fault';
import { singleFlightBy } from '../async/single-flight';
import {
  bytesOf,
  emptyFold,
  foldingStream,
  tenantEventOf,
  unreadable,
  type Fold,
  type UnreadableTenant,
} from './fold';
import { rememberedRequests, type RememberedRequests } from './remembered-requests';
import type { Snapshots } from './snapshots';

/** What decisions about a tenant are based on. */
export interface KnownTenant {
  readonly fold: Fold;
  /** Advances on its own, so it may be ahead of the fold. */
  readonly requests: RememberedRequests;
}

/** The folded tenants of this process: cached, and snapshotted now and then. */
export interface Folds {
  /** The fold in memory, if it has everything that was in the stream at this time. Without a time, however stale. */
  peek(tenantId: string, since?: number): Fold | undefined;
  /**
   * The tenant with everything that was in its stream at this time (on the clock of this thread), or later. At
   * `-Infinity`: the cached one, however stale. A read that misses the deadline continues, so later callers benefit.
   */
  asOf(tenantId: string, since: number, deadline: number): Promise<KnownTenant>;
  /**
   * Applies events that this process appended, by a call at this time. Returns the fold right after them, even if the
   * cache is ahead.
   */
  advance(tenantId: string, known: KnownTenant, appended: readonly Recorded<TenantEvent>[], at: number): Fold;
  /** The tenants whose streams could not be read at the last attempt, with the reason. */
  unreadable(): readonly UnreadableTenant[];
}

/** The maximum time on the thread before yielding to the event loop. */
const MAX_HOLD_MS = 2;
const CHECK_EVERY = 16;

/** Yields to the event loop once MAX_HOLD_MS has passed. */
const pacer = () => {
  let startedAt = threadMs();
  let count = 0;
  return async (): Promise<void> => {
    count += 1;
    if (count % CHECK_EVERY !== 0 || threadMs() - startedAt < MAX_HOLD_MS) return;
    await yieldToEventLoop();
    startedAt = threadMs();
  };
};

/**
 * Reads from where the fold and the remembered requests end up to the head of the stream. Undefined: the log no longer
 * contains the event of the snapshot at its revision, so the snapshot belongs to another history.
 */
const readToHeadFrom = async (
  tenantId: string,
  { fold, requests }: KnownTenant,
  { log, streams }: LedgerLog,
  snapshot: Fold | undefined,
): Promise<Fold | undefined> => {
  const folding = foldingStream(fold, tenantId);
  const yieldWhenDue = pacer();
  let isConfirmed = snapshot === undefined;
  let revision = Math.min(fold.revision, requests.revision()) - (isConfirmed ? 0 : 1);
  for await (const batch of log.readStream(streams.tenant(tenantId), revision))
    for (const logged of batch) {
      const isOfSnapshot = logged.revision === snapshot?.revision;
      if (isOfSnapshot && logged.id !== snapshot.eventId) return undefined;
      isConfirmed ||= isOfSnapshot;
      const event = tenantEventOf(logged, revision, tenantId, streams);
      ({ revision } = logged);
      if (revision > folding.revision()) folding.take(event);
      requests.take(event);
      await yieldWhenDue();
    }
  return isConfirmed ? folding.fold() : undefined;
};

const readToHead = async (tenantId: string, known: KnownTenant, ledgerLog: LedgerLog): Promise<Fold> =>
  (await readToHeadFrom(tenantId, known, ledgerLog, undefined)) ?? known.fold;

interface LoadedTenant {
  readonly known: KnownTenant;
  /** The revision of the snapshot that it was loaded from, or -1. */
  readonly snapshotAt: number;
}

/** From the snapshot and the events since; from the stream alone if the snapshot belongs to another history. */
const loadedTenant = async (tenantId: string, cache: FoldCache): Promise<LoadedTenant> => {
  const saved = await cache.snapshots.load(cache.streams.tenant(tenantId));
  if (saved !== undefined) {
    const requests = rememberedRequests(saved.replies, saved.fold.revision);
    const fold = await readToHeadFrom(tenantId, { fold: saved.fold, requests }, cache, saved.fold);
    if (fold !== undefined) return { known: { fold, requests }, snapshotAt: saved.fold.revision };
  }
  const empty = { fold: emptyFold, requests: rememberedRequests() };
  return { known: { ...empty, fold: await readToHead(tenantId, empty, cache) }, snapshotAt: -1 };
};

/** The estimated size of all cached folds. The least recently used are evicted first. */
const MAX_BYTES = 64 * 1_048_576;

/** The number of events after which a snapshot pays off; large folds need more. */
const snapshotEvery = (fold: Fold): number => Math.max(500, Math.floor(bytesOf(fold) / 2_000));

export const loadTimeout = () =>
  logFault('log_unavailable', 'The history of this tenant is still being read.');

interface Cached {
  readonly known: KnownTenant;
  /** It has everything that was in the stream at this time. */
  readonly at: number;
  readonly snapshotAt: number;
  readonly bytes: number;
}

interface FoldCache extends LedgerLog {
  readonly snapshots: Snapshots;
  /** Least recently used first. */
  readonly tenants: BoundedCache<Cached>;
  readonly unreadableTenants: Map<string, UnreadableTenant>;
}

/** Caches the tenant unless the cache is ahead of it, and returns the later of the two. */
const keep = (
  cache: FoldCache,
  tenantId: string,
  known: KnownTenant,
  { at, loadedAt }: { readonly at: number; readonly loadedAt?: number },
): KnownTenant => {
  const { fold, requests } = known;
  const before = cache.tenants.get(tenantId);
  if (before !== undefined && before.known.fold.revision > fold.revision) return before.known;
  if (fold.revision < 0) return known;
  const snapshotAt = loadedAt ?? before?.snapshotAt ?? fold.revision;
  const isDue = fold.revision - snapshotAt >= snapshotEvery(fold) && requests.revision() === fold.revision;
  if (isDue) void cache.snapshots.save(cache.streams.tenant(tenantId), { fold, replies: requests.packed() });
  const bytes = bytesOf(fold) + requests.bytes();
  cache.tenants.put(tenantId, {
    known,
    at: Math.max(at, before?.at ?? at),
    snapshotAt: isDue ? fold.revision : snapshotAt,
    bytes,
  });
  return known;
};

/** Once a stream turns out to be unreadable, evicts what is cached of it, so that nothing is decided on it. */
const reading = async <T>(cache: FoldCache, tenantId: string, work: () => Promise<T>): Promise<T> => {
  try {
    const result = await work();
    cache.unreadableTenants.delete(tenantId);
    return result;
  } catch (thrown) {
    // The store has lost events of the stream, and waiting will not bring them back.
    const isLost = codeOf(thrown) === 'history_missing';
    const error = isLost ? unreadable(tenantId, undefined, messageOf(thrown)) : thrown;
    if (codeOf(error) === 'tenant_unreadable') {
      cache.tenants.delete(tenantId);
      cache.unreadableTenants.set(tenantId, moreOf(error) as unknown as UnreadableTenant);
    }
    throw error;
  }
};

const load = async (cache: FoldCache, tenantId: string, at: number): Promise<KnownTenant> => {
  const { known, snapshotAt } = await reading(cache, tenantId, () => loadedTenant(tenantId, cache));
  return keep(cache, tenantId, known, { at, loadedAt: snapshotAt });
};

const catchUp = async (cache: FoldCache, tenantId: string, at: number): Promise<KnownTenant> => {
  const known = cache.tenants.get(tenantId)?.known;
  if (known === undefined) return load(cache, tenantId, at);
  const fold = await reading(cache, tenantId, () => readToHead(tenantId, known, cache));
  return keep(cache, tenantId, { fold, requests: known.requests }, { at });
};

export const cachedFolds = (
  log: EventLog,
  snapshots: Snapshots,
  streams: Streams,
  maxBytes = MAX_BYTES,
): Folds => {
  const tenants = boundedCache<Cached>(maxBytes, ({ bytes }) => bytes);
  const unreadableTenants = new Map<string, UnreadableTenant>();
  const cache: FoldCache = { log, snapshots, streams, tenants, unreadableTenants };
  /** Concurrent callers share a read. */
  const reads = singleFlightBy((tenantId, at) => catchUp(cache, tenantId, at));
  return {
    peek: (tenantId, since = -Infinity) => {
      const entry = tenants.get(tenantId);
      return entry === undefined || entry.at < since ? undefined : entry.known.fold;
    },
    asOf: async (tenantId, since, deadline) => {
      const entry = tenants.get(tenantId);
      if (entry === undefined || entry.at < since)
        return beforeDeadline(reads.since(tenantId, since), deadline, loadTimeout);
      tenants.put(tenantId, entry);
      return entry.known;
    },
    advance: (tenantId, { fold, requests }, appended, at) => {
      const folding = foldingStream(fold, tenantId);
      for (const event of appended) {
        folding.take(event);
        requests.take(event);
      }
      const advanced = folding.fold();
      keep(cache, tenantId, { fold: advanced, requests }, { at });
      return advanced;
    },
    unreadable: () => [...unreadableTenants.values()],
  };
};
