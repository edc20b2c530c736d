import type { Position } from '../event-log/event-log';

/** If no process projects, facts are still accepted after this time. */
const MAX_WAIT_MS = 30_000;

/**
 * Slows the appends down: read models are projected in the order of the log, so a backlog is what everybody's next write
 * waits for. The next batch is appended once the one before the last is shown.
 */
export const pace = (reached: (position: Position, withinMs: number) => Promise<boolean>) => {
  let last: Promise<boolean> = Promise.resolve(true);
  return {
    /** Resolves once more may be appended. */
    appended: async (position: Position): Promise<void> => {
      const before = last;
      last = before.then(() => reached(position, MAX_WAIT_MS));
      last.catch(() => undefined);
      await before;
    },
    /** Waits for the read models to catch up. False: they have not yet. */
    finished: (): Promise<boolean> => last,
  };
};
