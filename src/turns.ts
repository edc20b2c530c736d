import { threadMs } from './clock';

/**
 * Spreads work over turns of the event loop, so that many who wait for the same thing do not go on all at once and hold
 * the thread for the sum of their times.
 */
export interface Turns {
  /** Resolves in a later turn, in the order of the calls. */
  next(): Promise<void>;
  /** Does it now if this turn has time left and nobody waits; else in a later turn, in the order of the calls. */
  take(work: () => void): void;
  /** Counts turns in which somebody went on. */
  count(): number;
}

/** When this much of a turn is used, whoever still waits goes on in the next one. */
const TURN_MS = 3;

/** How many continue before the clock is checked, since checking costs as much as a short request does. */
const GROUP = 4;

export const turns = (turnMs = TURN_MS): Turns => {
  const waiting: (() => void)[] = [];
  let number = 0;
  let began = 0;
  let isScheduled = false;
  /** So many of those who wait came before this turn. */
  let due = 0;

  const hasTime = (): boolean => threadMs() - began < turnMs;

  const tickLater = (): void => process.nextTick(goOn);

  const goOn = (): void => {
    if (due === 0 || !hasTime()) return;
    const group = waiting.splice(0, Math.min(GROUP, due));
    due -= group.length;
    for (const work of group) work();
    // A tick that is asked for in a microtask comes after all that this group can do without waiting.
    if (due > 0) queueMicrotask(tickLater);
  };

  const begin = (): void => {
    isScheduled = false;
    if (waiting.length === 0) return;
    number += 1;
    due = waiting.length;
    began = threadMs();
    goOn();
    if (waiting.length > 0) schedule();
  };

  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    began = threadMs();
    setImmediate(begin);
  };

  return {
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        schedule();
      }),
    take: (work) => {
      schedule();
      if (waiting.length === 0 && hasTime()) work();
      else waiting.push(work);
    },
    count: () => number,
  };
};
