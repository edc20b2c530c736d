import { beforeDeadline, monotonicMs, threadMs, yieldToEventLoop } from '../async/clock';
import { singleFlightBy, turns } from '../async/concurrency';
import type { Caused } from '../domain/events';
import type { LedgerLog } from '../event-log/streams';
import { codeOf, fault, messageOf, moreOf } from '../fault';
import { TIMES } from '../times';
import * as folding from './fold';

/** `costOf` must always return the same cost for the same value. By default each value costs 1. */
export const boundedCache = <V>(max: number, costOf: (value: V) => number = () => 1) => {
  const values = new Map<string, V>();
  let cost = 0;
  const drop = (key: string): void => {
    const dropped = values.get(key);
    if (dropped !== undefined) cost -= costOf(dropped);
    values.delete(key);
  };
  return {
    get: (key: string): V | undefined => values.get(key),
    /** Puts the entry last, then evicts from the front until the total cost fits. The entry itself always stays. */
    put: (key: string, value: V): void => {
      drop(key);
      values.set(key, value);
      cost += costOf(value);
      if (cost <= max) return;
      for (const oldest of values.keys()) {
        if (cost <= max || oldest === key) return;
        drop(oldest);
      }
    },
    delete: drop,
  };
};

export type BoundedCache<V> = ReturnType<typeof boundedCache<V>>;

/** What decisions about a tenant are based on. All who know the tenant share it, and it is never ahead of the log. */
export interface KnownTenant extends folding.Fold {
  readonly requests: ReturnType<typeof folding.rememberedRequests>;
}

/** The folded tenants of this process, as far as they fit into memory. */
export interface Folds {
  /**
   * The tenant with everything that was in its stream at this time (on the clock of this thread), or later. At
   * `-Infinity`: the cached one, however stale. A read that misses the deadline continues, so later callers benefit.
   */
  asOf(tenantId: string, since: number, deadline: number): Promise<KnownTenant>;
  /** The same, but while the log does not answer, the tenant as it was when last looked up, unless that is too long ago. */
  forReading(tenantId: string, since: number, deadline: number): Promise<KnownTenant>;
  /** Applies events that this process appended by a call at this time, unless they have been read meanwhile. */
  advance(tenantId: string, known: KnownTenant, appended: readonly Caused[], at: number): void;
  /** As of when the tenant is in memory, on the clock of this thread. Undefined: it is not. */
  lookedAt(tenantId: string): number | undefined;
  /** The tenants whose streams could not be read at the last attempt, with the reason. */
  unreadable(): readonly folding.UnreadableTenant[];
}

export interface FoldsOptions {
  /** How long after a look at its stream a tenant may be read while the log does not answer. */
  readonly withoutLogMs: number;
  /** The estimated size of all cached folds. The least recently used are evicted first. */
  readonly maxBytes?: number;
}

const MAX_BYTES = 128 * 1_048_576;

/** So many tenants that are not in memory are read at a time. */
const COLD_AT_ONCE = 2;

export const loadTimeout = () =>
  fault('log_unavailable', 'The history of this tenant is still being read.', { isLoading: true });

/** How recent something is that was read from a stream. */
export interface Looked {
  /** It has everything that was in the stream at this time. */
  at: number;
  /** Since when the stream is being read. */
  askedAt?: number | undefined;
}

/**
 * For reading: the outcome of a look at the stream or, while the log does not answer, what is known, unless that is too
 * old. Those who come while the answer is already late do not wait.
 */
export const orKnown = <T>(
  looking: Promise<T>,
  known: () => T,
  { at, askedAt }: Looked,
  { withoutLogMs, waitMs }: { readonly withoutLogMs: number; readonly waitMs: number },
): Promise<T> => {
  const now = threadMs();
  if (now - at > withoutLogMs) return looking;
  const end = monotonicMs() + waitMs - (now - (askedAt ?? now));
  return beforeDeadline(looking, end, loadTimeout).catch((error: unknown) => {
    if (codeOf(error) !== 'log_unavailable') throw error;
    return known();
  });
};

interface Cached extends Looked {
  readonly known: KnownTenant;
  /** What the log's `changeToken` was before the stream was last read. */
  readonly token: number | undefined;
  /** What it was when it last differed, so that the read that follows need not ask again. */
  newToken?: number | undefined;
  readonly bytes: number;
}

interface FoldCache extends LedgerLog {
  /** Least recently used first. */
  readonly tenants: BoundedCache<Cached>;
  readonly unreadableTenants: Map<string, folding.UnreadableTenant>;
  readonly coldTurns: ReturnType<typeof turns>;
}

/** Caches the tenant unless the cache is ahead of it, and returns the later of the two. */
const keep = (
  { tenants }: FoldCache,
  tenantId: string,
  known: KnownTenant,
  { at, token }: Pick<Cached, 'at' | 'token'>,
): KnownTenant => {
  const before = tenants.get(tenantId);
  if (before !== undefined && before.known.revision > known.revision) return before.known;
  if (known.revision < 0) return known;
  const bytes = folding.bytesOf(known) + known.requests.bytes();
  tenants.put(tenantId, { known, at: Math.max(at, before?.at ?? at), token, bytes });
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
    const error = isLost ? folding.unreadable(tenantId, {}, messageOf(thrown)) : thrown;
    if (codeOf(error) === 'tenant_unreadable') {
      cache.tenants.delete(tenantId);
      cache.unreadableTenants.set(tenantId, moreOf(error) as unknown as folding.UnreadableTenant);
    }
    throw error;
  }
};

const take = (known: KnownTenant, event: Caused): void => {
  folding.foldEvent(known, event);
  known.requests.take(event);
};

/** Yields to the event loop once a turn is over. */
const pacer = () => {
  let startedAt = threadMs();
  return async (): Promise<void> => {
    if (threadMs() - startedAt < TIMES.turnMs) return;
    await yieldToEventLoop();
    startedAt = threadMs();
  };
};

/** Whoever has read this many events lets others have their turn before it reads on. */
const TURN_EVENTS = 2_000;

/** Advances it to the head of the stream, turn by turn. Between two events, somebody else may advance it too. */
const readToHead = async (
  tenantId: string,
  known: KnownTenant,
  { log, streams }: LedgerLog,
  inTurn: FoldCache['coldTurns'],
): Promise<void> => {
  const yieldWhenDue = pacer();
  let { revision } = known;

  /** Returns how many it has read. The read is not left open while others have their turn. */
  const readSome = async (): Promise<number> => {
    let count = 0;
    for await (const batch of log.readStream(streams.tenant(tenantId), revision)) {
      for (const logged of batch) {
        const event = folding.tenantEventOf(logged, revision, tenantId, streams);
        ({ revision } = logged);
        if (revision > known.revision) take(known, event);
        await yieldWhenDue();
      }
      count += batch.length;
      if (count >= TURN_EVENTS) break;
    }
    return count;
  };

  for (let count = TURN_EVENTS; count >= TURN_EVENTS;) count = await inTurn(readSome);
};

/** Only a tenant that is not in memory waits for its turn: of the others, little is left to read. */
const catchUp = async (cache: FoldCache, tenantId: string, at: number): Promise<KnownTenant> => {
  const entry = cache.tenants.get(tenantId);
  const known = entry?.known ?? { ...folding.emptyFold(), requests: folding.rememberedRequests() };
  const inTurn: FoldCache['coldTurns'] = entry === undefined ? cache.coldTurns : (work) => work();
  const token = entry?.newToken ?? cache.log.changeToken?.();
  if (entry !== undefined) entry.askedAt = at;
  try {
    await reading(cache, tenantId, () => readToHead(tenantId, known, cache, inTurn));
    return keep(cache, tenantId, known, { at, token });
  } finally {
    if (entry !== undefined) entry.askedAt = undefined;
  }
};

/** Whether it has everything that was in the stream at this time: it was looked up since, or nothing was appended. */
const isCurrent = (entry: Cached, since: number, { log }: LedgerLog): boolean => {
  if (entry.at >= since) return true;
  const at = threadMs();
  if (entry.token === undefined) return false;
  entry.newToken = log.changeToken?.();
  if (entry.newToken !== entry.token) return false;
  entry.at = at;
  return true;
};

export const cachedFolds = (
  ledgerLog: LedgerLog,
  { withoutLogMs, maxBytes = MAX_BYTES }: FoldsOptions,
): Folds => {
  const tenants = boundedCache<Cached>(maxBytes, ({ bytes }) => bytes);
  const unreadableTenants = new Map<string, folding.UnreadableTenant>();
  const cache: FoldCache = { ...ledgerLog, tenants, unreadableTenants, coldTurns: turns(COLD_AT_ONCE) };
  /** Concurrent callers share a read. */
  const reads = singleFlightBy((tenantId, at) => catchUp(cache, tenantId, at));

  const current = (tenantId: string, since: number): KnownTenant | undefined => {
    const entry = tenants.get(tenantId);
    if (entry === undefined || !isCurrent(entry, since, ledgerLog)) return undefined;
    tenants.put(tenantId, entry);
    return entry.known;
  };
  const readSince = (tenantId: string, since: number, deadline: number): Promise<KnownTenant> =>
    beforeDeadline(reads.since(tenantId, since), deadline, loadTimeout);

  return {
    asOf: async (...asked) => current(asked[0], asked[1]) ?? readSince(...asked),
    forReading: async (tenantId, since, deadline) => {
      const entry = tenants.get(tenantId);
      const found = current(tenantId, since);
      if (found !== undefined) return found;
      const looking = readSince(tenantId, since, deadline);
      if (entry === undefined) return looking;
      const known = () => tenants.get(tenantId)?.known ?? entry.known;
      return orKnown(looking, known, entry, { withoutLogMs, waitMs: TIMES.noAnswerMs });
    },
    advance: (tenantId, known, appended, at) => {
      for (const event of appended) if (event.revision > known.revision) take(known, event);
      keep(cache, tenantId, known, { at, token: undefined });
    },
    lookedAt: (tenantId) => tenants.get(tenantId)?.at,
    unreadable: () => [...unreadableTenants.values()],
  };
};
