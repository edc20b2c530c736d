import { monotonicMs, pause, RETRY_MS } from './clock';
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
  const retried = async (): Promise<T> => {
    for (;;)
      try {
        return await work();
      } catch (error) {
        const final = store.final(error);
        if (final !== undefined) throw final;
        const left = end - monotonicMs();
        if (left <= 0) throw store.late(Math.round(waitMs / 1_000), error);
        report(error);
        await pause(Math.min(RETRY_MS, left));
      }
  };
  const timer = setTimeout(() => report(fault('no_answer', 'It does not answer.')), REPORT_AFTER_MS);
  return retried().finally(() => clearTimeout(timer));
};
