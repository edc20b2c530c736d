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
