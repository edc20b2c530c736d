import { monotonicMs, pause } from '../async/clock';
import type { Retry } from '../event-log/append-once';
import { codeOf, moreOf } from '../fault';
import { TIMES } from '../times';

const AWAY: ReadonlySet<string | undefined> = new Set([
  'log_unavailable',
  'outcome_unknown',
  'read_models_unavailable',
]);

const retryMs = (error: unknown, waitMs: number): number => {
  if (moreOf(error)['isFinal'] === true) return 0;
  // The log is watched, and certain to be rolled back after this time; a little later, the process ends.
  if (codeOf(error) === 'log_set_back') return Math.min(waitMs, TIMES.logDoubtMs + TIMES.noAnswerMs);
  return AWAY.has(codeOf(error)) ? waitMs : 0;
};

/** Waits for up to this long. `onWaiting` is called once for each time that a store is away. */
export const retrying = (waitMs: number, onWaiting: (error: unknown) => void): Retry => {
  let isAway = false;
  return async (action) => {
    const beganAt = monotonicMs();
    for (;;)
      try {
        const result = await action();
        isAway = false;
        return result;
      } catch (error) {
        if (monotonicMs() - beganAt >= retryMs(error, waitMs)) throw error;
        if (!isAway) onWaiting(error);
        isAway = true;
        await pause(TIMES.retryMs);
      }
  };
};
