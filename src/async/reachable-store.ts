import { fault, type Fault } from '../fault';
import { TIMES } from '../times';
import { beforeDeadline, monotonicMs } from './clock';
import { repeated } from './repeated';

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
    if (monotonicMs() - reportedAt < TIMES.awayMs) return;
    reportedAt = monotonicMs();
    onError(`Waiting for ${store.name}.`, error);
  };
  const attempt = (): Promise<T> => {
    const now = monotonicMs();
    const withinMs = Math.min(TIMES.waitMs, Math.max(TIMES.noAnswerMs, end - now));
    return beforeDeadline(work(), now + withinMs, noAnswer);
  };
  const timer = setTimeout(() => report(noAnswer()), TIMES.tellMs);
  const answered = repeated(attempt, (error) => {
    const final = store.final(error);
    if (final !== undefined) throw final;
    if (end - monotonicMs() < TIMES.retryMs) throw store.late(Math.round(waitMs / 1_000), error);
    report(error);
    return TIMES.retryMs;
  });
  return answered.finally(() => clearTimeout(timer));
};
