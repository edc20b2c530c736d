import { threadMs } from './clock';

/** Once the queued work of a turn of the event loop has taken this long, the rest is left for a later turn. */
const TURN_MS = 3;

/** How many of the deferred pieces of work each turn tries again. */
const MAX_RETRIED = 100;

const waiting: (() => void)[] = [];
let number = 0;
/** When the first queued work of this turn was started. Undefined: none was yet. */
let workingSince: number | undefined;
let isOpen = false;
let deferred = 0;

const endTurn = (): void => {
  isOpen = false;
  const retried = Math.min(deferred, MAX_RETRIED);
  deferred -= retried;
  for (let i = 0; i < retried; i += 1) setImmediate(runNext);
};

/** The number of this turn of the event loop. A turn ends before the next queued work runs. */
export const currentTurn = (): number => {
  if (isOpen) return number;
  isOpen = true;
  number += 1;
  workingSince = undefined;
  setImmediate(endTurn);
  return number;
};

/** Other work of the turn does not count: each turn starts at least the work that has waited longest. */
const runNext = (): void => {
  currentTurn();
  workingSince ??= threadMs();
  if (threadMs() - workingSince < TURN_MS) waiting.shift()?.();
  else deferred += 1;
};

/**
 * Runs the work in a later turn, in call order. Each piece runs in an immediate of its own, so a burst of work does not
 * block the thread for the sum of its run times. Everything that runs in a turn was queued before that turn.
 */
export const inLaterTurn = (work: () => void): void => {
  waiting.push(work);
  setImmediate(runNext);
};
