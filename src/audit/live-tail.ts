import { pause, RETRY_MS } from '../async/clock';
import type { Batch, EventLog, Position, ReadFrom } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { condition } from '../async/condition';

/** How long a read is shared: all followers of a tenant read at about the same time. */
const SHARED_MS = 100;

type Read = Promise<Batch>;

interface Followed {
  changes: number;
  followers: number;
  /** The reads since the last change, by start position. */
  readonly reads: Map<Position | undefined, Read>;
  readonly changed: ReturnType<typeof condition>;
}

const tenantsOf = (batch: Batch, streams: Streams): ReadonlySet<string> =>
  new Set(batch.map(({ stream }) => streams.parse(stream)?.tenantId ?? ''));

type FollowedLog = Pick<EventLog, 'head' | 'readAll' | 'readTenant'>;

const firstBatch = async (batches: AsyncIterable<Batch>): Read => {
  for await (const batch of batches) return batch;
  return [];
};

/** Reports tenants that have new events, or all if it cannot tell which, until stopped. */
const followLog = async (
  log: FollowedLog,
  streams: Streams,
  from: ReadFrom & { readonly signal: AbortSignal },
  onChange: (tenants: ReadonlySet<string> | 'all') => void,
): Promise<void> => {
  let { after } = from;
  while (!from.signal.aborted) {
    try {
      for await (const batch of log.readAll({ ...from, after, follow: true })) {
        after = batch.at(-1)?.position ?? after;
        onChange(tenantsOf(batch, streams));
      }
    } catch {
      // Each follower then reads for itself and gets the error.
      onChange('all');
    }
    // Without an error, the log was closed.
    await pause(RETRY_MS, from.signal);
  }
};

const followerOf = (
  followed: Followed,
  readAfter: (after: Position | undefined) => Read,
  leave: () => void,
) => {
  let isFollowing = true;
  return {
    /** A number that changes whenever the tenant may have new events. */
    changes: (): number => followed.changes,
    /** The next events of the tenant after a position. Followers at the same position share the read. */
    read: (after: Position | undefined): Read => {
      const shared = followed.reads.get(after);
      if (shared !== undefined) return shared;
      const read = readAfter(after);
      followed.reads.set(after, read);
      const forget = (): void => void (followed.reads.get(after) === read && followed.reads.delete(after));
      read.then(() => setTimeout(forget, SHARED_MS).unref(), forget);
      return read;
    },
    /** Waits until `changes` differs from this, or the signal is aborted. */
    wait: async (since: number, abort: AbortSignal): Promise<void> => {
      if (followed.changes === since) await followed.changed.wait({ abort });
    },
    stop: (): void => {
      if (isFollowing) leave();
      isFollowing = false;
    },
  };
};

export type Follower = ReturnType<typeof followerOf>;

/** Wakes the followers of a tenant when it has new events. Follows the log once, however many followers there are. */
export const liveTail = (log: FollowedLog, streams: Streams) => {
  const tenants = new Map<string, Followed>();
  let running: { readonly stop: AbortController; readonly started: Promise<void> } | undefined;

  const onChange = (changed: ReadonlySet<string> | 'all'): void => {
    for (const tenantId of changed === 'all' ? tenants.keys() : changed) {
      const followed = tenants.get(tenantId);
      if (followed === undefined) continue;
      followed.changes += 1;
      followed.reads.clear();
      followed.changed.notify();
    }
  };

  const start = () => {
    const stop = new AbortController();
    const started = log
      .head()
      .then((head) => void followLog(log, streams, { after: head?.position, signal: stop.signal }, onChange));
    return { stop, started };
  };

  const leave = (tenantId: string, followed: Followed): void => {
    followed.followers -= 1;
    if (followed.followers === 0) tenants.delete(tenantId);
    if (tenants.size > 0) return;
    running?.stop.abort();
    running = undefined;
  };

  return {
    /** Once resolved, no later append is missed. */
    follow: async (tenantId: string): Promise<Follower> => {
      const followed = tenants.get(tenantId) ?? {
        changes: 0,
        followers: 0,
        reads: new Map<Position | undefined, Read>(),
        changed: condition(),
      };
      followed.followers += 1;
      tenants.set(tenantId, followed);
      const readAfter = (after: Position | undefined): Read =>
        firstBatch(log.readTenant(tenantId, { after }));
      const follower = followerOf(followed, readAfter, () => leave(tenantId, followed));
      running ??= start();
      const { started } = running;
      try {
        await started;
      } catch (error) {
        if (running?.started === started) running = undefined;
        follower.stop();
        throw error;
      }
      return follower;
    },
  };
};

export type LiveTail = ReturnType<typeof liveTail>;
