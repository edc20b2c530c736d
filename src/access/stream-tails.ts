import { boundedCache } from '../bounded-cache';
import { changesAfter, noChanges, type AccessChanges } from '../domain/access-changes';
import type { Recorded, TenantEvent } from '../domain/events';
import type { EventLog } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { tenantEventOf } from '../ledger/fold';
import { sharedRuns, type SharedRuns } from '../shared-runs';

/** What the tenants' streams say about keys beyond what a lagging read model shows. */
export interface StreamTails {
  /**
   * Everything after a revision that was in the tenant's stream at this time (on the clock of this thread) or later.
   * Throws `tenant_unreadable` or `log_unavailable`.
   */
  read(tenantId: string, after: number, since: number): Promise<Tail>;
  /** The tail that was read last, however old. */
  known(tenantId: string): Tail | undefined;
  /** Drops a tail that is no longer needed, unless it has been replaced. */
  forget(tail: Tail, tenantId: string): void;
}

export interface Tail {
  readonly after: number;
  /** The last revision included. */
  readonly upTo: number;
  /** When its read started. */
  readonly at: number;
  readonly changes: AccessChanges;
  /** The number of events. */
  readonly size: number;
}

/** In all tails together. The least recently used are dropped, and read again when needed. */
const MAX_EVENTS = 100_000;

/** Empty tails are not free: made-up keys can name any number of nonexistent tenants. */
const costOf = ({ size }: Tail): number => size + 1;

const emptyTail = (after: number, at: number): Tail => ({
  after,
  upTo: after,
  at,
  changes: noChanges,
  size: 0,
});

export const streamTails = (log: Pick<EventLog, 'readStream'>, streams: Streams): StreamTails => {
  const tails = boundedCache(MAX_EVENTS, costOf);
  const reading = new Map<string, SharedRuns<Tail>>();

  /** Continues the known tail, if that is possible, so that only newer events are read. */
  const readMore = async (tenantId: string, after: number, at: number): Promise<Tail> => {
    const known = tails.get(tenantId);
    const isContinued = known !== undefined && known.after <= after && after <= known.upTo;
    const before = isContinued ? known : emptyTail(after, at);
    const events: Recorded<TenantEvent>[] = [];
    for await (const batch of log.readStream(streams.tenant(tenantId), before.upTo))
      for (const logged of batch)
        events.push(tenantEventOf(logged, before.upTo + events.length, tenantId, streams));
    const tail: Tail = {
      after: before.after,
      upTo: before.upTo + events.length,
      at,
      changes: events.length === 0 ? before.changes : changesAfter(before.changes, events),
      size: before.size + events.length,
    };
    tails.put(tenantId, tail);
    return tail;
  };

  return {
    known: (tenantId) => tails.get(tenantId),
    forget: (tail, tenantId) => {
      if (tails.get(tenantId) === tail) tails.delete(tenantId);
    },
    read: async (tenantId, after, since) => {
      const known = tails.get(tenantId);
      if (known !== undefined && known.after <= after && known.at >= since)
        return known.upTo >= after ? known : emptyTail(after, known.at);
      // Most concurrent callers are at the same revision.
      const key = `${tenantId} ${after}`;
      const runs = reading.get(key) ?? sharedRuns((at) => readMore(tenantId, after, at));
      reading.set(key, runs);
      try {
        return await runs.since(since);
      } finally {
        if (!runs.isRunning()) reading.delete(key);
      }
    },
  };
};
