import { threadMs } from './clock';

/** One run of a piece of work that many may wait for. */
export interface Run<T> {
  /** When it began, on the clock of this thread. */
  readonly at: number;
  readonly done: Promise<T>;
}

/** Work that runs at most once at a time, for everybody who asks while it runs. */
export interface SharedRuns<T> {
  /** The run that is under way; if there is none, another one is begun. */
  current(): Run<T>;
  /** The outcome of a run that began at this time or later. It waits for at most two runs. */
  since(time: number): Promise<T>;
  /** The outcome of a run that begins after this call: it sees everything that happened before. */
  fresh(): Promise<T>;
  isRunning(): boolean;
}

export const sharedRuns = <T>(work: (at: number) => Promise<T>): SharedRuns<T> => {
  let run: Run<T> | undefined;

  const current = (): Run<T> => {
    if (run !== undefined) return run;
    const at = threadMs();
    const begun = { at, done: work(at).finally(() => (run = undefined)) };
    begun.done.catch(() => undefined);
    run = begun;
    return begun;
  };

  const since = async (time: number): Promise<T> => {
    for (;;) {
      const { at, done } = current();
      if (at >= time) return done;
      await done.catch(() => undefined);
    }
  };

  return {
    current,
    isRunning: () => run !== undefined,
    since,
    fresh: async () => {
      const asked = threadMs();
      // All who ask at once share one run.
      await Promise.resolve();
      return since(asked);
    },
  };
};
