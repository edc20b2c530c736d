import { monotonicMs, pause } from '../../src/async/clock';
import { codeOf } from '../../src/fault';

const SOONEST_MS = 5;
const LATEST_MS = 50;

/**
 * Waits for a condition. The longer it has waited, the less often it checks: a check may be a request to a busy
 * process.
 */
export const until = async (
  condition: () => boolean | Promise<boolean>,
  withinMs = 30_000,
  what = String(condition),
): Promise<void> => {
  const startedAt = monotonicMs();
  while (!(await condition())) {
    const waited = monotonicMs() - startedAt;
    if (waited > withinMs) throw new Error(`It did not come true within ${withinMs} ms: ${what}`);
    await pause(Math.min(LATEST_MS, SOONEST_MS + waited / 20));
  }
};

/** The code of the error that a promise is rejected with, or its text; 'no refusal' if it resolves. */
export const refusedWith = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => 'no refusal',
    (error: unknown) => codeOf(error) ?? String(error),
  );

export const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );

export const timed = async <T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly ms: number }> => {
  const startedAt = monotonicMs();
  const value = await work();
  return { value, ms: monotonicMs() - startedAt };
};

export const deferred = <T = void>() => {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
};
