import { boundedCache } from '../bounded-cache';
import { changesAfter, noChanges, type AccessChanges } from '../domain/access-changes';
import type { Recorded, TenantEvent } from '../domain/events';
import type { EventLog } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { tenantEventOf } from '../ledger/fold';
import { sharedRuns, type SharedRuns } from '../shared-runs';

/** What the tenants' own streams say about keys beyond what a read model shows, for as long as it lags. */
export interface StreamTails {
  /**
   * Everything after a revision that was in the tenant's stream at this time (on the clock of this thread) or later.
   * Fails with `tenant_unreadable` or `log_unavailable`.
   */
  read(tenantId: string, after: number, since: number): Promise<Tail>;
  /** What was read before, however old. */
  known(tenantId: string): Tail | undefined;
  /** It is of no more use, unless another one was read since. */
  forget(tail: Tail, tenantId: string): void;
}

export interface Tail {
  readonly after: number;
  /** The last revision that is in. */
  readonly upTo: number;
  /** When it was asked for. */
  readonly at: number;
  readonly changes: AccessChanges;
  /** How many events are in it. */
  readonly size: number;
}

/** Of all tails together, in events: the least recently read are dropped, and read again when they are needed. */
const MAX_EVENTS = 100_000;

/** An empty one is not free: whoever makes up keys can ask for any number of tenants that are not there. */
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

  /** Goes on from what was read before; only what came since is read. */
  const readOn = async (tenantId: string, after: number, at: number): Promise<Tail> => {
    const known = tails.get(tenantId);
    const fits = known !== undefined && known.after <= after && after <= known.upTo;
    const before = fits ? known : emptyTail(after, at);
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
      // Most who ask in the meantime are at the same revision.
      const name = `${tenantId} ${after}`;
      const runs = reading.get(name) ?? sharedRuns((at) => readOn(tenantId, after, at));
      reading.set(name, runs);
      try {
        return await runs.since(since);
      } finally {
        if (!runs.isRunning()) reading.delete(name);
      }
    },
  };
};
