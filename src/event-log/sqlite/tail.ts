import { condition } from '../../async/condition';

/** Waits for changes of a file: by this process at once, by other processes within POLL_MS. */
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

/** Calls `wake` whenever this process has committed. */
export type Listen = (wake: () => void) => { close(): void };

/** Listens from its first use on, so that a thread that follows nothing is not woken. */
export const tail = (dataVersion: () => number, listen: Listen): Tail => {
  const changed = condition();
  let listening: ReturnType<Listen> | undefined;
  let news = 0;
  let version: number | undefined = dataVersion();
  let closed = false;

  const wake = (): void => {
    news += 1;
    changed.notify();
  };
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
      if (!closed) listening ??= listen(wake);
      poll();
      return news;
    },
    changedSince: async (seen, abort) => {
      while (!closed && news === seen && abort?.aborted !== true) {
        await changed.wait({ withinMs: POLL_MS, abort });
        if (news === seen) poll();
      }
    },
    isClosed: () => closed,
    close: () => {
      closed = true;
      listening?.close();
      changed.notify();
    },
  };
};
