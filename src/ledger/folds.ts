import { beforeDeadline } from '../clock';
import { logFault, type EventLog, type LoggedEvent } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { codeOf, type Fault } from '../fault';
import { emptyFold, foldOn, weightOf, type Fold } from './fold';
import type { Snapshots } from './snapshots';

/** The folded tenants of this process: cached by revision, snapshotted now and then. */
export interface Folds {
  /** What this process knows; perhaps others have written since. */
  known(tenantId: string, deadline: number): Promise<Fold>;
  /** Read up to the head of the stream. A long read that misses its deadline goes on for those who come later. */
  atHead(tenantId: string, deadline: number): Promise<Fold>;
  /** Takes in what this process has just appended to the given fold. Gives the fold right after that, whatever came since. */
  advance(tenantId: string, fold: Fold, appended: readonly LoggedEvent[]): Fold;
  /** The tenants whose streams could not be read, with the reason, as last seen. */
  unreadable(): readonly Fault[];
}

/** The sum of the weights of the folds that are kept, the least recently used dropped first. */
const MOST_WEIGHT = 200_000;

/** A snapshot is worth its price after so many events, and after more when the fold is large. */
const snapshotEvery = (fold: Fold): number => Math.max(500, Math.floor(weightOf(fold) / 4));

const slow = () => logFault('log_unavailable', 'The history of this tenant is still being read.');

interface Cached {
  readonly fold: Fold;
  readonly snapshotAt: number;
  readonly weight: number;
}

export const cachedFolds = (log: EventLog, snapshots: Snapshots, streams: Streams): Folds => {
  const cache = new Map<string, Cached>();
  const broken = new Map<string, Fault>();
  const loading = new Map<string, Promise<Fold>>();
  let weight = 0;

  const drop = (tenantId: string): void => {
    weight -= cache.get(tenantId)?.weight ?? 0;
    cache.delete(tenantId);
  };

  const keep = (tenantId: string, fold: Fold, snapshotAt: number): Fold => {
    const known = cache.get(tenantId);
    if (known !== undefined && known.fold.revision > fold.revision) return known.fold;
    drop(tenantId);
    if (fold.revision < 0) return fold;
    const due = fold.revision - snapshotAt >= snapshotEvery(fold);
    if (due) void snapshots.save(streams.tenant(tenantId), fold);
    const entry = { fold, snapshotAt: due ? fold.revision : snapshotAt, weight: weightOf(fold) };
    cache.set(tenantId, entry);
    weight += entry.weight;
    for (const oldest of cache.keys()) {
      if (weight <= MOST_WEIGHT || oldest === tenantId) break;
      drop(oldest);
    }
    return fold;
  };

  const foldFrom = async (tenantId: string, start: Fold): Promise<Fold> => {
    let fold = start;
    try {
      for await (const batch of log.readStream(streams.tenant(tenantId), start.revision))
        fold = foldOn(fold, batch, tenantId, streams);
    } catch (error) {
      drop(tenantId);
      if (codeOf(error) === 'tenant_unreadable') broken.set(tenantId, error as Fault);
      throw error;
    }
    broken.delete(tenantId);
    return fold;
  };

  /** A snapshot counts only if the log still holds its last event where it says. */
  const fromSnapshot = async (tenantId: string): Promise<Fold | undefined> => {
    const stream = streams.tenant(tenantId);
    const snapshot = await snapshots.load(stream);
    if (snapshot === undefined) return undefined;
    for await (const [event] of log.readStream(stream, snapshot.revision - 1))
      return event?.revision === snapshot.revision && event.id === snapshot.eventId ? snapshot : undefined;
    return undefined;
  };

  const loadOnce = async (tenantId: string): Promise<Fold> => {
    const snapshot = await fromSnapshot(tenantId);
    const fold = await foldFrom(tenantId, snapshot ?? emptyFold());
    return keep(tenantId, fold, snapshot?.revision ?? -1);
  };

  /** Whoever comes while a tenant is being loaded waits for the same load. */
  const load = (tenantId: string): Promise<Fold> => {
    const under = loading.get(tenantId);
    if (under !== undefined) return under;
    const begun = loadOnce(tenantId).finally(() => loading.delete(tenantId));
    loading.set(tenantId, begun);
    return begun;
  };

  const catchUp = async (tenantId: string): Promise<Fold> => {
    if (!cache.has(tenantId)) await load(tenantId);
    const entry = cache.get(tenantId);
    if (entry === undefined) return emptyFold();
    return keep(tenantId, await foldFrom(tenantId, entry.fold), entry.snapshotAt);
  };

  const touch = (tenantId: string, entry: Cached): Fold => {
    cache.delete(tenantId);
    cache.set(tenantId, entry);
    return entry.fold;
  };

  return {
    known: async (tenantId, deadline) => {
      const entry = cache.get(tenantId);
      return entry === undefined ? beforeDeadline(load(tenantId), deadline, slow) : touch(tenantId, entry);
    },
    atHead: (tenantId, deadline) => beforeDeadline(catchUp(tenantId), deadline, slow),
    advance: (tenantId, fold, appended) => {
      const snapshotAt = cache.get(tenantId)?.snapshotAt ?? -1;
      const advanced = foldOn(fold, appended, tenantId, streams);
      keep(tenantId, advanced, snapshotAt);
      return advanced;
    },
    unreadable: () => [...broken.values()],
  };
};
