/** Waits for news in a file: woken at once by this process, and by other processes' commits within POLL_MS. */
export interface Tail {
  /** This process has committed something. */
  wake(): void;
  /** The number of news so far; read it before looking, and give it to `newsSince` when nothing was found. */
  seen(): number;
  /** Resolves when there has been news since then, when the signal is aborted, or when the tail is closed. */
  newsSince(seen: number, signal?: AbortSignal): Promise<void>;
  isClosed(): boolean;
  /** Wakes everybody for the last time: there will be no more news, and the file is not looked at again. */
  close(): void;
}

const POLL_MS = 50;

export const tail = (dataVersion: () => number): Tail => {
  const sleepers = new Set<() => void>();
  let news = 0;
  let version: number | undefined = dataVersion();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  const wake = (): void => {
    news += 1;
    for (const sleeper of sleepers) sleeper();
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
    const current = look();
    if (current !== undefined && current === version) return;
    version = current;
    wake();
  };
  const sleep = (sleeper: () => void): void => {
    sleepers.add(sleeper);
    timer ??= setInterval(poll, POLL_MS);
  };
  const unsleep = (sleeper: () => void): void => {
    sleepers.delete(sleeper);
    if (sleepers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    wake,
    seen: () => {
      if (!closed) poll();
      return news;
    },
    newsSince: (seen, signal) =>
      new Promise((resolve) => {
        if (closed || news !== seen || signal?.aborted === true) return resolve();
        const done = (): void => {
          unsleep(done);
          signal?.removeEventListener('abort', done);
          resolve();
        };
        signal?.addEventListener('abort', done);
        sleep(done);
      }),
    isClosed: () => closed,
    close: () => {
      closed = true;
      for (const sleeper of sleepers) sleeper();
    },
  };
};
