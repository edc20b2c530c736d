import { beforeDeadline, monotonicMs, threadMs } from '../async/clock';
import type { EventLog, Position } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { Reader } from '../read-models/read-models';
import { singleFlight } from '../async/single-flight';

/** Without a deadline, a log that takes longer than this counts as away. */
const ANSWER_MS = 300;

/** A proof is renewed at this age, while it still counts. */
const RENEW_AFTER_MS = 150;

/** Keeps track of how long the log has been away, even without requests. */
const POLL_MS = 5_000;

/** A generation that was removed, as while this process was suspended, shows nothing any more. */
const appliedBy = (reader: Reader): Promise<Position> =>
  reader.applied().then(
    (position) => position ?? '',
    (error: unknown) => {
      if (codeOf(error) !== 'generation_removed') throw error;
      return '';
    },
  );

/** False: not by the deadline. */
const respondsBy = (response: Promise<void>, deadline: number): Promise<boolean> =>
  beforeDeadline(response, deadline, () => new Error('The log does not answer.')).then(
    () => true,
    () => false,
  );

/**
 * Proves that a read model shows everything that was in the log a moment ago: first the log is asked for its head, then
 * the read model is seen to have reached it. So it shows everything up to the time when the log was asked. Calls
 * `onProof` on each new proof.
 */
export const freshness = (log: Pick<EventLog, 'head'>, onProof: () => void) => {
  let answeredAt = threadMs();
  let goal: { readonly at: number; readonly position: Position } | undefined;
  let proof: { readonly at: number; readonly reader?: Reader } = { at: -Infinity };

  const heads = singleFlight(async (at) => {
    const head = await log.head();
    answeredAt = threadMs();
    goal = { at, position: head?.position ?? '' };
  });

  const polling = setInterval(() => {
    if (threadMs() - answeredAt >= POLL_MS) heads.current();
  }, POLL_MS);
  polling.unref();

  /** Whether the reader is proven to show all that was in the log at this time or later. Renews an ageing proof. */
  const renewIfProven = (reader: Reader, since: number): boolean => {
    if (proof.reader !== reader || proof.at < since) return false;
    if (goal?.at === proof.at && threadMs() - proof.at >= RENEW_AFTER_MS) heads.current();
    return true;
  };

  /** The reader is asked once the head is known: whatever it has reached by then, it shows from then on. */
  const prove = async (reader: Reader, since: number): Promise<boolean> => {
    const target = goal;
    if (target === undefined || target.at < since) return false;
    if ((await appliedBy(reader)) < target.position) return false;
    if (proof.reader !== reader || proof.at < target.at) {
      proof = { at: target.at, reader };
      onProof();
    }
    return true;
  };

  const defaultDeadline = (): number => monotonicMs() + ANSWER_MS - (threadMs() - heads.current().at);

  return {
    renewIfProven,
    /**
     * Whether the reader shows everything that was in the log at this time (on the clock of this thread) or later.
     * - `behind`: it does not, or that cannot be proven yet.
     * - `away`: the log did not respond by the deadline (on the monotonic clock) or, without one, within a moment.
     */
    shows: async (reader: Reader, since: number, deadline?: number): Promise<'shown' | 'behind' | 'away'> => {
      if (renewIfProven(reader, since)) return 'shown';
      if (await prove(reader, since)) return 'shown';
      if (goal !== undefined && goal.at >= since) return 'behind';
      if (!(await respondsBy(heads.since(since), deadline ?? defaultDeadline()))) return 'away';
      return (await prove(reader, since)) ? 'shown' : 'behind';
    },
    /** Whether the reader shows everything that was in the log when the log last responded. */
    showsLastHead: async (reader: Reader): Promise<boolean> =>
      goal !== undefined && (await appliedBy(reader)) >= goal.position,
    /** When the log last responded. */
    answeredAt: () => answeredAt,
    close: async () => clearInterval(polling),
  };
};
