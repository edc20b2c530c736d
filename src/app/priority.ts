import { constants, setPriority } from 'node:os';

/**
 * For long work next to a server, whose requests come first. On Linux it concerns the calling thread, and threads that
 * this starts later; elsewhere the whole process.
 */
export const lowerPriority = (): void => {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Not allowed here: the work runs at normal priority.
  }
};
