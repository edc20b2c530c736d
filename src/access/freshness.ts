import { beforeDeadline, monotonicMs, threadMs } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Reader } from '../read-models/read-models';
import { sharedRuns } from '../shared-runs';

/**
 * Knows whether a read model shows everything that the log held a moment ago. The proof: the log is asked for its head,
 * and after that the read model is seen to have reached it. So it shows everything up to the time of the question.
 */
export interface Freshness {
  /** It is proven already that the reader shows everything that was in the log at this time or later. */
  isProven(reader: Reader, since: number): boolean;
  /**
   * Does the reader show everything that was in the log at this time (on the clock of this thread) or later?
   * - `behind`: it does not, or this cannot be shown yet.
   * - `away`: the log does not answer within a moment; with a deadline (on the monotonic clock), not before that.
   */
  shows(reader: Reader, since: number, deadline?: number): Promise<Shown>;
  /** Does the reader show everything that was in the log when that last answered? */
  showsLastHead(reader: Reader): Promise<boolean>;
  /** When the log last answered. */
  answeredAt(): number;
  close(): Promise<void>;
}

export type Shown = 'shown' | 'behind' | 'away';

/** A log that takes longer than this counts as away, for those who can do without it. Nobody else waits for it. */
const ANSWER_MS = 300;

/** A proof is renewed at this age, while the one before it still counts. */
const RENEW_AFTER_MS = 150;

/** Even without requests it must be known since when the log has been away. */
const LOOK_EVERY_MS = 5_000;

interface Goal {
  readonly at: number;
  readonly position: Position;
}

interface Proof {
  readonly at: number;
  readonly reader: Reader | undefined;
}

/** False: not by then. */
const isAnswered = (question: Promise<void>, deadline: number): Promise<boolean> =>
  beforeDeadline(question, deadline, () => new Error('The log does not answer.')).then(
    () => true,
    () => false,
  );

/** Calls `onProof` whenever a reader was seen to have reached more than before. */
export const freshness = (log: Pick<EventLog, 'head'>, onProof: () => void): Freshness => {
  let answeredAt = threadMs();
  let goal: Goal | undefined;
  let proof: Proof = { at: -Infinity, reader: undefined };

  const heads = sharedRuns(async (at) => {
    const head = await log.head();
    answeredAt = threadMs();
    goal = { at, position: head?.position ?? '' };
  });

  const looking = setInterval(() => {
    if (threadMs() - answeredAt >= LOOK_EVERY_MS) heads.current();
  }, LOOK_EVERY_MS);
  looking.unref();

  const isProven = (reader: Reader, since: number): boolean => {
    if (proof.reader !== reader || proof.at < since) return false;
    if (goal?.at === proof.at && threadMs() - proof.at >= RENEW_AFTER_MS) heads.current();
    return true;
  };

  /** The reader is asked after the head was known: what it has reached then it shows from now on. */
  const prove = async (reader: Reader, since: number): Promise<boolean> => {
    const reached = goal;
    if (reached === undefined || reached.at < since) return false;
    const applied = (await reader.applied()) ?? '';
    if (applied < reached.position) return false;
    if (proof.reader !== reader || proof.at < reached.at) {
      proof = { at: reached.at, reader };
      onProof();
    }
    return true;
  };

  const soon = (): number => monotonicMs() + ANSWER_MS - (threadMs() - heads.current().at);

  return {
    isProven,
    shows: async (reader, since, deadline) => {
      if (isProven(reader, since)) return 'shown';
      if (await prove(reader, since)) return 'shown';
      if (goal !== undefined && goal.at >= since) return 'behind';
      if (!(await isAnswered(heads.since(since), deadline ?? soon()))) return 'away';
      return (await prove(reader, since)) ? 'shown' : 'behind';
    },
    showsLastHead: async (reader) => goal !== undefined && ((await reader.applied()) ?? '') >= goal.position,
    answeredAt: () => answeredAt,
    close: async () => clearInterval(looking),
  };
};
