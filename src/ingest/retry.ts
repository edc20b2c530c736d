import { monotonicMs } from '../async/clock';
import { repeated } from '../async/repeated';
import type { Retry } from '../event-log/append-once';
import { codeOf, isAway, isFinal } from '../fault';
import { TIMES } from '../times';

const retryMs = (error: unknown, waitMs: number): number => {
  if (isFinal(error)) return 0;
  // The log is watched, and certain to be rolled back after this time; a little later, the process ends.
  if (codeOf(error) === 'log_set_back') return Math.min(waitMs, TIMES.logDoubtMs + TIMES.noAnswerMs);
  return isAway(error) ? waitMs : 0;
};

/** Waits for up to this long. `onWaiting` is called once for each time that a store is away. */
export const retrying = (waitMs: number, onWaiting: (error: unknown) => void): Retry => {
  let isWaiting = false;
  return async (action) => {
    const beganAt = monotonicMs();
    const result = await repeated(action, (error) => {
      if (monotonicMs() - beganAt >= retryMs(error, waitMs)) return undefined;
      if (!isWaiting) onWaiting(error);
      isWaiting = true;
      return TIMES.retryMs;
    });
    isWaiting = false;
    return result;
  };
};
