import { signal } from '../../signal';

/** Waits for news in a file: woken at once by this process, and by other processes' commits within POLL_MS. */
export interface Tail {
  /** This process has committed something. */
  wake(): void;
  /** The number of news so far; read it before looking, and give it to `newsSince` when nothing was found. */
  seen(): number;
  /** Resolves when there has been news since then, when the signal is aborted, or when the tail is closed. */
  newsSince(seen: number, abort?: AbortSignal): Promise<void>;
  isClosed(): boolean;
  /** Wakes everybody for the last time: there will be no more news, and the file is not looked at again. */
  close(): void;
}

const POLL_MS = 50;

export const tail = (dataVersion: () => number): Tail => {
  const changed = signal();
  let news = 0;
  let version: number | undefined = dataVersion();
  let closed = false;

  const wake = (): void => {
    news += 1;
    changed.notify();
  };
  /** A file that cannot be looked at counts as news: whoever reads then finds out what is wrong, and can say so. */
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
    wake,
    seen: () => {
      poll();
      return news;
    },
    newsSince: async (seen, abort) => {
      while (!closed && news === seen && abort?.aborted !== true) {
        await changed.wait({ withinMs: POLL_MS, abort });
        poll();
      }
    },
    isClosed: () => closed,
    close: () => {
      closed = true;
      changed.notify();
    },
  };
};
