import { RETRY_MS, threadMs } from '../async/clock';
import { codeOf } from '../fault';
import type { Step } from '../projecting/project';

/** How long a slice may take: appends wait for it. */
export const SLICE_MS = 10;
/** After this time, a set whose lock another process holds is tried again. */
const BUSY_MS = 5;
/** The longest pause between slices. */
const MAX_PAUSE_MS = 50;
/** What a process that was killed has appended is found after this time. */
const IDLE_MS = 1_000;

export interface Slices {
  /** Projects a slice. Resolves when it is done, whatever came of it. */
  run(): Promise<void>;
  /** Resolves when the last slice is done. */
  stop(): Promise<void>;
}

/**
 * Projects in the thread that appends, in slices: one after each group of appends; while there is more, another one after
 * a pause as long as the last one, so that other processes get the lock of the set; and one every second.
 */
export const slices = (step: () => Promise<Step['outcome']>, onError: (error: unknown) => void): Slices => {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let last: Promise<void> = Promise.resolve();

  const slice = async (): Promise<number> => {
    const began = threadMs();
    try {
      while ((await step()) !== 'at_end') {
        const tookMs = threadMs() - began;
        if (tookMs >= SLICE_MS) return Math.min(tookMs, MAX_PAUSE_MS);
      }
      return IDLE_MS;
    } catch (error) {
      if (codeOf(error) === 'read_models_busy') return BUSY_MS;
      onError(error);
      return RETRY_MS;
    }
  };
  const runNow = async (): Promise<void> => {
    clearTimeout(timer);
    const waitMs = await slice();
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(() => void run(), waitMs);
  };
  const run = (): Promise<void> => (last = last.then(runNow));

  return {
    run,
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      return last;
    },
  };
};
