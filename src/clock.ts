/** Milliseconds on a clock that never jumps and that all threads of the process share. Only for deadlines. */
export const monotonicMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);

export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
