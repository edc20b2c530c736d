import { condition } from '../../async/condition';
import { TIMES } from '../../times';

/** Waits for changes of a log, which are noticed within TIMES.followMs. */
export interface Tail {
  /** The number of changes so far. Read it before the file, and pass it to `changedSince` if nothing new was found. */
  seen(): number;
  /** Resolves once there is a change since then, the signal is aborted, or the tail is closed. */
  changedSince(seen: number, abort?: AbortSignal): Promise<void>;
  isClosed(): boolean;
  /** Wakes all waiters for the last time. The file is not read again. */
  close(): void;
}

/** The token is another one after each change; undefined, which counts as one, if the file cannot be read. */
export const tail = (changeToken: () => number | undefined): Tail => {
  const changed = condition();
  let changes = 0;
  let token = changeToken();
  let closed = false;

  const poll = (): void => {
    if (closed) return;
    const current = changeToken();
    if (current !== undefined && current === token) return;
    token = current;
    changes += 1;
    changed.notify();
  };

  return {
    seen: () => {
      poll();
      return changes;
    },
    changedSince: async (seen, abort) => {
      while (!closed && changes === seen && abort?.aborted !== true) {
        await changed.wait({ withinMs: TIMES.followMs, abort });
        if (changes === seen) poll();
      }
    },
    isClosed: () => closed,
    close: () => {
      closed = true;
      changed.notify();
    },
  };
};
