import { condition } from './condition';

/** The zero of this thread's `performance.now()`, on the clock that all threads of the process share. */
const THREAD_ORIGIN = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds on a monotonic clock that all threads of the process share. For deadlines only. */
export const monotonicMs = (): number => Math.floor(THREAD_ORIGIN + performance.now());

/** Milliseconds with fractions, on this thread's own clock: for telling moments within a millisecond apart. */
export const threadMs = (): number => performance.now();

/** Formats times as ISO 8601: once where the same time comes several times in a row. */
export const isoFormat = () => {
  let [last, text] = [NaN, ''];
  return (time: number): string => {
    if (time !== last) [last, text] = [time, new Date(time).toISOString()];
    return text;
  };
};

const isoOfNow = isoFormat();

/** Now, as ISO 8601. */
export const isoNow = (): string => isoOfNow(Date.now());

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

export const pause = (ms: number, abort?: AbortSignal): Promise<void> =>
  condition().wait({ withinMs: ms, abort });
