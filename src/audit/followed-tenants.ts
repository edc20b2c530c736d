import { pause, condition, type Condition } from '../async/clock';
import type { Batch, Position, ReadFrom } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { TIMES } from '../times';

interface Followed {
  followers: number;
  /** It grows whenever the tenant may have new events. */
  changes: number;
  readonly changed: Condition;
}

/** Tells which tenants may have new events: follows the log once for all of them, and only while there are any. */
const newEvents = ({ log, streams }: LedgerLog) => {
  const tenants = new Map<string, Followed>();
  let following: AbortController | undefined;

  const wake = (tenantIds: Iterable<string>): void => {
    for (const tenantId of tenantIds) {
      const followed = tenants.get(tenantId);
      if (followed === undefined) continue;
      followed.changes += 1;
      followed.changed.notify();
    }
  };
  const followLog = async (signal: AbortSignal): Promise<void> => {
    let after: Position | undefined;
    while (!signal.aborted) {
      try {
        after ??= (await log.head())?.position;
        // What was appended before is not reported.
        wake(tenants.keys());
        for await (const batch of log.readAll({ after, follow: true, signal })) {
          after = batch.at(-1)?.position ?? after;
          wake(new Set(batch.map(({ stream }) => streams.parse(stream)?.tenantId ?? '')));
        }
      } catch {
        // Each follower then reads for itself, and gets the error.
        wake(tenants.keys());
      }
      await pause(TIMES.retryMs, signal);
    }
  };

  return {
    join: (tenantId: string): Followed => {
      const followed = tenants.get(tenantId) ?? { followers: 0, changes: 0, changed: condition() };
      followed.followers += 1;
      tenants.set(tenantId, followed);
      if (following === undefined) {
        following = new AbortController();
        void followLog(following.signal);
      }
      return followed;
    },
    leave: (tenantId: string, followed: Followed): void => {
      followed.followers -= 1;
      if (followed.followers === 0) tenants.delete(tenantId);
      if (tenants.size > 0) return;
      following?.abort();
      following = undefined;
    },
  };
};

export const followedTenants = (ledgerLog: LedgerLog) => {
  const { join, leave } = newEvents(ledgerLog);
  /** All events of a tenant after a position, and then new ones as they come, until `signal` is aborted. */
  return async function* follow(
    { log }: LedgerLog,
    tenantId: string,
    { after, signal }: Omit<ReadFrom, 'follow'>,
  ): AsyncGenerator<Batch> {
    const followed = join(tenantId);
    let position = after;
    let seen = -1;
    try {
      while (signal?.aborted !== true) {
        const { changes } = followed;
        const batches = changes === seen ? [] : log.readTenant(tenantId, { after: position, signal });
        for await (const batch of batches) {
          yield batch;
          position = batch.at(-1)?.position ?? position;
        }
        seen = changes;
        // An empty batch lets the follower look whether it still may read.
        if (followed.changes === seen)
          await followed.changed.wait({ withinMs: TIMES.keyAgeMs, abort: signal });
        yield [];
      }
    } finally {
      leave(tenantId, followed);
    }
  };
};
