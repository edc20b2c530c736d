import { beforeDeadline } from '../clock';
import { logFault, type EventLog, type LoggedEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { codeOf, messageOf, type Fault } from '../fault';
import { bytesOf, foldingStream, historyLost, tenantEventOf, type Fold } from './fold';
import { loadedTenant, readOn, type KnownTenant } from './tenant-loading';
import type { Snapshots } from './snapshots';

/** The folded tenants of this process: cached by revision, snapshotted now and then. */
export interface Folds {
  /** What this process has in memory; perhaps others have written since. Never reads anything. */
  peek(tenantId: string): Fold | undefined;
  /** What this process knows; perhaps others have written since. */
  known(tenantId: string, deadline: number): Promise<KnownTenant>;
  /** Read up to the head of the stream. A long read that misses its deadline goes on for those who come later. */
  atHead(tenantId: string, deadline: number): Promise<KnownTenant>;
  /** Takes in what this process has just appended to the given fold. Gives the fold right after that, whatever came since. */
  advance(tenantId: string, known: KnownTenant, appended: readonly LoggedEvent[]): Fold;
  /** The tenants whose streams could not be read, with the reason, as last seen. */
  unreadable(): readonly Fault[];
}

/** Of all the folds that are kept, roughly: the least recently used are dropped first. */
const MOST_BYTES = 64 * 1_048_576;

/** A snapshot is worth its price after so many events, and after more when the fold is large. */
const snapshotEvery = (fold: Fold): number => Math.max(500, Math.floor(bytesOf(fold) / 2_000));

const slow = () => logFault('log_unavailable', 'The history of this tenant is still being read.');

interface Cached {
  readonly known: KnownTenant;
  readonly snapshotAt: number;
  readonly bytes: number;
}

export const cachedFolds = (
  log: EventLog,
  snapshots: Snapshots,
  streams: Streams,
  mostBytes = MOST_BYTES,
): Folds => {
  const cache = new Map<string, Cached>();
  const broken = new Map<string, Fault>();
  const loading = new Map<string, Promise<KnownTenant>>();
  let bytes = 0;

  const drop = (tenantId: string): void => {
    bytes -= cache.get(tenantId)?.bytes ?? 0;
    cache.delete(tenantId);
  };

  /** Puts it last: it was just used. */
  const put = (tenantId: string, entry: Cached): void => {
    drop(tenantId);
    cache.set(tenantId, entry);
    bytes += entry.bytes;
    for (const oldest of cache.keys()) {
      if (bytes <= mostBytes || oldest === tenantId) return;
      drop(oldest);
    }
  };

  /** Gives the later one of this and what is cached. */
  const keep = (tenantId: string, known: KnownTenant, loadedAt?: number): KnownTenant => {
    const { fold, replies } = known;
    const before = cache.get(tenantId);
    if (before !== undefined && before.known.fold.revision > fold.revision) return before.known;
    if (fold.revision < 0) return known;
    const snapshotAt = loadedAt ?? before?.snapshotAt ?? fold.revision;
    const isDue = fold.revision - snapshotAt >= snapshotEvery(fold);
    if (isDue) void snapshots.save(streams.tenant(tenantId), fold);
    replies.flush();
    const size = bytesOf(fold) + replies.bytes();
    put(tenantId, { known, snapshotAt: isDue ? fold.revision : snapshotAt, bytes: size });
    return known;
  };

  /** Whatever is known of a stream that cannot be read is not decided on. */
  const reading = async <T>(tenantId: string, work: () => Promise<T>): Promise<T> => {
    try {
      const result = await work();
      broken.delete(tenantId);
      return result;
    } catch (thrown) {
      const isLost = codeOf(thrown) === 'history_missing';
      const error = isLost ? historyLost(tenantId, messageOf(thrown)) : thrown;
      if (codeOf(error) === 'tenant_unreadable') {
        drop(tenantId);
        broken.set(tenantId, error as Fault);
      }
      throw error;
    }
  };

  const loadOnce = async (tenantId: string): Promise<KnownTenant> => {
    const onLost = (): void => drop(tenantId);
    const parts = { log, snapshots, streams, onLost };
    const { known, snapshotAt } = await reading(tenantId, () => loadedTenant(tenantId, parts));
    return keep(tenantId, known, snapshotAt);
  };

  /** Whoever comes while a tenant is being loaded waits for the same load. */
  const load = (tenantId: string): Promise<KnownTenant> => {
    const under = loading.get(tenantId);
    if (under !== undefined) return under;
    const begun = loadOnce(tenantId).finally(() => loading.delete(tenantId));
    loading.set(tenantId, begun);
    return begun;
  };

  /** A load may have begun earlier: what came since is read after it. It goes on from what it gave, cached or not. */
  const catchUp = async (tenantId: string): Promise<KnownTenant> => {
    const known = cache.get(tenantId)?.known ?? (await load(tenantId));
    const fold = await reading(tenantId, () => readOn(tenantId, known, { log, streams }));
    return keep(tenantId, { fold, replies: known.replies });
  };

  return {
    peek: (tenantId) => cache.get(tenantId)?.known.fold,
    known: async (tenantId, deadline) => {
      const entry = cache.get(tenantId);
      if (entry === undefined) return beforeDeadline(load(tenantId), deadline, slow);
      put(tenantId, entry);
      return entry.known;
    },
    atHead: (tenantId, deadline) => beforeDeadline(catchUp(tenantId), deadline, slow),
    advance: (tenantId, { fold, replies }, appended) => {
      const folding = foldingStream(fold, tenantId);
      for (const logged of appended) {
        const event = tenantEventOf(logged, folding.revision(), tenantId, streams);
        folding.take(logged, event);
        replies.take(event);
      }
      const advanced = folding.fold();
      keep(tenantId, { fold: advanced, replies });
      return advanced;
    },
    unreadable: () => [...broken.values()],
  };
};
