import { beforeDeadline, monotonicMs, pause, RETRY_MS } from './clock';
import { fault, type Fault } from '../fault';

export interface WaitingForStore {
  /** How long to wait for the server to become reachable. Infinity: as long as it takes. */
  readonly waitMs: number;
  /** Called with failures that are retried. */
  readonly onError: (what: string, error: unknown) => void;
}

export interface AwaitedStore {
  /** What to call the store in messages, without credentials. */
  readonly name: string;
  /** The error to throw at once where retrying cannot help. Undefined: retry. */
  readonly final: (error: unknown) => Error | undefined;
  /** The error to throw when the time is up. */
  readonly late: (seconds: number, error: unknown) => Fault;
}

/** The first report comes with the first failure, or after this long without an answer. */
const REPORT_AFTER_MS = 2_000;
const REPORT_EVERY_MS = 10_000;

/** How long one attempt may take, unless there is less time: several round trips, each with its own timeout. */
const ATTEMPT_MS = 5_000;
const MIN_ATTEMPT_MS = 1_000;

const noAnswer = (): Fault => fault('no_answer', 'It does not answer.');

/** Retries until the store answers or the time is up, and reports now and then what it is waiting for. */
export const whenReachable = async <T>(
  work: () => Promise<T>,
  store: AwaitedStore,
  { waitMs, onError }: WaitingForStore,
): Promise<T> => {
  const end = monotonicMs() + waitMs;
  let reportedAt = -Infinity;
  const report = (error: unknown): void => {
    if (monotonicMs() - reportedAt < REPORT_EVERY_MS) return;
    reportedAt = monotonicMs();
    onError(`Waiting for ${store.name}.`, error);
  };
  const attempt = (): Promise<T> => {
    const now = monotonicMs();
    const withinMs = Math.min(ATTEMPT_MS, Math.max(MIN_ATTEMPT_MS, end - now));
    return beforeDeadline(work(), now + withinMs, noAnswer);
  };
  const retried = async (): Promise<T> => {
    for (;;)
      try {
        return await attempt();
      } catch (error) {
        const final = store.final(error);
        if (final !== undefined) throw final;
        if (end - monotonicMs() < RETRY_MS) throw store.late(Math.round(waitMs / 1_000), error);
        report(error);
        await pause(RETRY_MS);
      }
  };
  const timer = setTimeout(() => report(noAnswer()), REPORT_AFTER_MS);
  return retried().finally(() => clearTimeout(timer));
};
