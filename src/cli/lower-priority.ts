import { constants, setPriority } from 'node:os';

/** For long work beside a server, whose callers go first. Threads inherit the priority of the one that starts them. */
export const lowerPriority = (): void => {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Where it is not allowed, the work goes on as it is.
  }
};
