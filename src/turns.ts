import { threadMs } from './clock';

/** When this much of a turn of the event loop is used, what still waits is begun in the next one. */
const TURN_MS = 3;

/** How many of those that a turn had no time for are tried in the next one. */
const TRIED_AGAIN = 100;

const waiting: (() => void)[] = [];
let number = 0;
let began = 0;
let isOpen = false;
let late = 0;

const endTurn = (): void => {
  isOpen = false;
  const again = Math.min(late, TRIED_AGAIN);
  late -= again;
  for (let i = 0; i < again; i += 1) setImmediate(beginNext);
};

/** The number of this turn of the event loop. It ends before the next work that waits is begun. */
export const currentTurn = (): number => {
  if (isOpen) return number;
  isOpen = true;
  number += 1;
  began = threadMs();
  setImmediate(endTurn);
  return number;
};

const beginNext = (): void => {
  currentTurn();
  if (threadMs() - began < TURN_MS) waiting.shift()?.();
  else late += 1;
};

/**
 * Begins the work in a later turn, in the order of the calls. Each has an immediate of its own, with everything that it
 * does without waiting: so many that come at once do not hold the thread for the sum of their times. Whatever is begun in
 * the same turn was handed in before that turn.
 */
export const inLaterTurn = (work: () => void): void => {
  waiting.push(work);
  setImmediate(beginNext);
};
