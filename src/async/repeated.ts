import { pause } from './clock';

/**
 * Repeats work until it succeeds. `waitMs` says after how long, given the last error and the number of failures;
 * undefined: that error is the outcome.
 */
export const repeated = async <T>(
  work: () => Promise<T>,
  waitMs: (error: unknown, failures: number) => number | undefined,
  abort?: AbortSignal,
): Promise<T> => {
  for (let failures = 1; ; failures += 1)
    try {
      return await work();
    } catch (error) {
      const ms = waitMs(error, failures);
      if (ms === undefined) throw error;
      await pause(ms, abort);
    }
};
