import { threadMs } from '../async/clock';
import type { Position } from '../event-log/event-log';
import type { Shown, Step } from '../projecting/project';
import { TIMES } from '../times';

export interface Slices {
  /** Projects a slice, up to a position or the end of the log. Resolves when it is done, whatever came of it. */
  run(upTo?: Position): Promise<void>;
  /** Resolves when the last slice is done. */
  stop(): Promise<void>;
}

const isUpTo = (shown: Shown | undefined, position: Position | undefined): boolean =>
  shown !== undefined && position !== undefined && shown.position >= position;

/**
 * Projects in the thread that appends, in slices: one after each group of appends; while there is more, another one; and
 * one every second.
 */
export const slices = (step: () => Promise<Step>, onError: (error: unknown) => void): Slices => {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let last: Promise<void> = Promise.resolve();

  const slice = async (upTo: Position | undefined): Promise<number> => {
    const began = threadMs();
    try {
      for (;;) {
        const { outcome, shown } = await step();
        if (outcome === 'at_end' || isUpTo(shown, upTo)) return TIMES.renewMs;
        if (outcome === 'busy') return TIMES.busyRetryMs;
        if (threadMs() - began >= TIMES.sliceMs) return 0;
      }
    } catch (error) {
      onError(error);
      return TIMES.retryMs;
    }
  };
  const runNow = async (upTo: Position | undefined): Promise<void> => {
    clearTimeout(timer);
    const waitMs = await slice(upTo);
    clearTimeout(timer);
    if (!isStopped) timer = setTimeout(() => void run(), waitMs);
  };
  const run = (upTo?: Position): Promise<void> => (last = last.then(() => runNow(upTo)));

  return {
    run,
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
      return last;
    },
  };
};
