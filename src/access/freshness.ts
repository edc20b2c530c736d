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

/** How old a proof may be when the log stops responding. A revoked key is refused for reads after this long. */
const LATELY_MS = 1_000;

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

/** The head of the log, also asked for regularly: when the log stops responding, the last one is at most this old. */
const lastHead = (log: Pick<EventLog, 'head'>) => {
  let answeredAt = threadMs();
  let goal: { readonly at: number; readonly position: Position } | undefined;
  const heads = singleFlight(async (at) => {
    const head = await log.head();
    answeredAt = threadMs();
    goal = { at, position: head?.position ?? '' };
  });
  const polling = setInterval(() => {
    if (threadMs() - answeredAt >= POLL_MS) heads.current();
  }, POLL_MS);
  polling.unref();
  return {
    heads,
    goal: () => goal,
    /** When the log last responded. */
    answeredAt: () => answeredAt,
    close: async () => clearInterval(polling),
  };
};

/**
 * Proves that a read model shows everything that was in the log a moment ago: first the log is asked for its head, then
 * the read model is seen to have reached it. So it shows everything up to the time when the log was asked. Calls
 * `onProof` on each new proof.
 */
export const freshness = (log: Pick<EventLog, 'head'>, onProof: () => void) => {
  const { heads, goal, answeredAt, close } = lastHead(log);
  let proof: { readonly at: number; readonly reader?: Reader } = { at: -Infinity };

  /** Whether the reader is proven to show all that was in the log at this time or later. Renews an ageing proof. */
  const renewIfProven = (reader: Reader, since: number): boolean => {
    if (proof.reader !== reader || proof.at < since) return false;
    if (goal()?.at === proof.at && threadMs() - proof.at >= RENEW_AFTER_MS) heads.current();
    return true;
  };

  /** The reader is asked once the head is known: whatever it has reached by then, it shows from then on. */
  const prove = async (reader: Reader, since: number): Promise<boolean> => {
    const target = goal();
    if (target === undefined || target.at < since) return false;
    if ((await appliedBy(reader)) < target.position) return false;
    if (proof.reader !== reader || proof.at < target.at) {
      proof = { at: target.at, reader };
      onProof();
    }
    return true;
  };

  /** Whether the reader shows everything that was in the log when the log last responded. */
  const showsLastHead = async (reader: Reader): Promise<boolean> => {
    const head = goal();
    return head !== undefined && (await appliedBy(reader)) >= head.position;
  };

  const defaultDeadline = (): number => monotonicMs() + ANSWER_MS - (threadMs() - heads.current().at);

  return {
    /**
     * Whether the reader shows everything that was in the log at this time (on the clock of this thread) or later.
     * - `behind`: it does not, or that cannot be proven yet.
     * - `away`: the log did not respond by the deadline (on the monotonic clock) or, without one, within a moment.
     */
    shows: async (reader: Reader, since: number, deadline?: number): Promise<'shown' | 'behind' | 'away'> => {
      if (renewIfProven(reader, since)) return 'shown';
      if (await prove(reader, since)) return 'shown';
      if ((goal()?.at ?? -Infinity) >= since) return 'behind';
      if (!(await respondsBy(heads.since(since), deadline ?? defaultDeadline()))) return 'away';
      return (await prove(reader, since)) ? 'shown' : 'behind';
    },
    showsLastHead,
    /**
     * False: the reader is known to lack something that was in the log a moment before that last responded. Under load
     * it is always a few events behind the last head.
     */
    showedLately: async (reader: Reader): Promise<boolean> =>
      goal() === undefined ||
      (proof.reader === reader && proof.at >= answeredAt() - LATELY_MS) ||
      showsLastHead(reader),
    answeredAt,
    close,
  };
};
