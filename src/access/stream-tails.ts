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
const MOST_EVENTS = 100_000;

/** An empty one is not free: whoever makes up keys can ask for any number of tenants that are not there. */
const costOf = ({ size }: Tail): number => size + 1;

const emptyTail = (after: number, at: number): Tail => ({
  after,
  upTo: after,
  at,
  changes: noChanges,
  size: 0,
});

/** The tails that are kept, the least recently read first. */
interface KeptTails {
  readonly tails: Map<string, Tail>;
  cost: number;
}

const drop = (kept: KeptTails, tenantId: string): void => {
  const dropped = kept.tails.get(tenantId);
  if (dropped !== undefined) kept.cost -= costOf(dropped);
  kept.tails.delete(tenantId);
};

const keep = (kept: KeptTails, tenantId: string, tail: Tail): Tail => {
  drop(kept, tenantId);
  kept.tails.set(tenantId, tail);
  kept.cost += costOf(tail);
  for (const oldest of kept.tails.keys()) {
    if (kept.cost <= MOST_EVENTS || oldest === tenantId) break;
    drop(kept, oldest);
  }
  return tail;
};

export const streamTails = (log: Pick<EventLog, 'readStream'>, streams: Streams): StreamTails => {
  const kept: KeptTails = { tails: new Map(), cost: 0 };
  const { tails } = kept;
  const reading = new Map<string, SharedRuns<Tail>>();

  /** Goes on from what was read before; only what came since is read. */
  const readOn = async (tenantId: string, after: number, at: number): Promise<Tail> => {
    const known = tails.get(tenantId);
    const fits = known !== undefined && known.after <= after && after <= known.upTo;
    const tail = fits ? { ...known, at } : emptyTail(after, at);
    const events: Recorded<TenantEvent>[] = [];
    for await (const batch of log.readStream(streams.tenant(tenantId), tail.upTo))
      for (const logged of batch)
        events.push(tenantEventOf(logged, tail.upTo + events.length, tenantId, streams));
    if (events.length === 0) return keep(kept, tenantId, tail);
    return keep(kept, tenantId, {
      ...tail,
      upTo: tail.upTo + events.length,
      size: tail.size + events.length,
      changes: changesAfter(tail.changes, events),
    });
  };

  return {
    known: (tenantId) => tails.get(tenantId),
    forget: (tail, tenantId) => {
      if (tails.get(tenantId) === tail) drop(kept, tenantId);
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
