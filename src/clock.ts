import { signal } from './signal';

/** When the clock of this thread began, on the one that all threads of the process share. */
const THREAD_BEGAN = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds on a clock that never jumps and that all threads of the process share. Only for deadlines. */
export const monotonicMs = (): number => Math.floor(THREAD_BEGAN + performance.now());

/** The same with fractions, on a clock of this thread alone: for distinctions within a millisecond. */
export const threadMs = (): number => performance.now();

/** Now, as ISO 8601. Much happens in one millisecond: its text is made once. */
export const isoNow = (() => {
  let [last, text] = [NaN, ''];
  return (): string => {
    const now = Date.now();
    if (now !== last) [last, text] = [now, new Date(now).toISOString()];
    return text;
  };
})();

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

/** Yields to the event loop: everything else that waits in this thread goes first. */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export const pause = (ms: number, abort?: AbortSignal): Promise<void> =>
  signal().wait({ withinMs: ms, abort });
