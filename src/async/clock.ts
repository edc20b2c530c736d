/** Milliseconds on a monotonic clock that all threads of the process share. For deadlines only. */
export const monotonicMs = (): number => Math.floor(Number(process.hrtime.bigint()) / 1e6);

/** Milliseconds with fractions, on this thread's own clock: for telling moments within a millisecond apart. */
export const threadMs = (): number => performance.now();

let formattedMs = NaN;
let formatted = '';

/** Now, as ISO 8601: formatted once a millisecond. */
export const isoNow = (): string => {
  const now = Date.now();
  if (now !== formattedMs) formatted = new Date(now).toISOString();
  formattedMs = now;
  return formatted;
};

/** The outcome of a promise, or the given error once the deadline (on the monotonic clock) has passed. */
export const beforeDeadline = <T>(promise: Promise<T>, deadline: number, late: () => Error): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), Math.max(0, deadline - monotonicMs()));
  });
  return Promise.race([promise, tooLate]).finally(() => clearTimeout(timer));
};

/** The outcome of a promise, or undefined if it fails or takes longer than this. */
export const orUndefined = <T>(promise: Promise<T>, withinMs: number): Promise<T | undefined> =>
  beforeDeadline(promise, monotonicMs() + withinMs, () => new Error('No answer.')).catch(() => undefined);

/** Lets everything else that is queued in this thread run first. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Wakes waiters when something may have changed. A waiter checks its condition, waits, and checks again. `wait`
 * registers synchronously, so no wake-up is missed as long as there is no `await` between the check and the call.
 */
export interface Condition {
  /** Wakes everyone who is waiting now. */
  notify(): void;
  /** Resolves at the next `notify`, when the time is up, or when `abort` is aborted; it never rejects. */
  wait(until?: { readonly withinMs?: number; readonly abort?: AbortSignal | undefined }): Promise<void>;
}

export const condition = (): Condition => {
  const waiting = new Set<() => void>();
  return {
    notify: () => {
      for (const wake of waiting) wake();
    },
    wait: ({ withinMs, abort } = {}) =>
      new Promise((resolve) => {
        if (abort?.aborted === true) return resolve();
        const wake = (): void => {
          clearTimeout(timer);
          waiting.delete(wake);
          abort?.removeEventListener('abort', wake);
          resolve();
        };
        const timer = withinMs === undefined ? undefined : setTimeout(wake, withinMs);
        waiting.add(wake);
        abort?.addEventListener('abort', wake);
      }),
  };
};

export const pause = (ms: number, abort?: AbortSignal): Promise<void> =>
  condition().wait({ withinMs: ms, abort });
