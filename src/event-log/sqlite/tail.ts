import { resolve } from 'node:path';
import { condition } from '../../async/condition';

/** Waits for changes of a log: by this thread at once, by other threads and processes within POLL_MS. */
export interface Tail {
  /** The number of changes so far. Read it before the file, and pass it to `changedSince` if nothing new was found. */
  seen(): number;
  /** Resolves once there is a change since then, the signal is aborted, or the tail is closed. */
  changedSince(seen: number, abort?: AbortSignal): Promise<void>;
  isClosed(): boolean;
  /** Wakes all waiters for the last time. The file is not read again. */
  close(): void;
}

const POLL_MS = 50;

/** What wakes the tails of this thread. */
const wakes = new Set<{ readonly path: string; readonly wake: () => void }>();

/** Called when this thread has appended to a log. */
export const announce = (path: string): void => {
  for (const tailed of wakes) if (tailed.path === resolve(path)) tailed.wake();
};

export const tail = (path: string, dataVersion: () => number): Tail => {
  const changed = condition();
  let changes = 0;
  let version: number | undefined = dataVersion();
  let closed = false;

  const wake = (): void => {
    changes += 1;
    changed.notify();
  };
  const tailed = { path: resolve(path), wake };
  wakes.add(tailed);
  /** A file that cannot be read counts as changed, so that the next read finds and reports the error. */
  const look = (): number | undefined => {
    try {
      return dataVersion();
    } catch {
      return undefined;
    }
  };
  const poll = (): void => {
    if (closed) return;
    const current = look();
    if (current !== undefined && current === version) return;
    version = current;
    wake();
  };

  return {
    seen: () => {
      poll();
      return changes;
    },
    changedSince: async (seen, abort) => {
      while (!closed && changes === seen && abort?.aborted !== true) {
        await changed.wait({ withinMs: POLL_MS, abort });
        if (changes === seen) poll();
      }
    },
    isClosed: () => closed,
    close: () => {
      closed = true;
      wakes.delete(tailed);
      changed.notify();
    },
  };
};
