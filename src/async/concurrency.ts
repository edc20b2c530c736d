import { threadMs, yieldToEventLoop } from './clock';

/** Work that never runs twice at the same time: callers that come while it runs share the run. */
export interface SingleFlight<T> {
  /** The outcome of a run that started at this time (of this thread) or later. Waits for two runs at most. */
  since(time: number): Promise<T>;
  /**
   * The outcome of a run that starts after this call, so it sees everything that happened before the call. All that is
   * received together shares one run.
   */
  fresh(): Promise<T>;
}

export const singleFlight = <T>(work: (at: number) => Promise<T>): SingleFlight<T> => {
  let run: { readonly at: number; readonly done: Promise<T> } | undefined;
  let next: Promise<T> | undefined;

  const current = () => {
    if (run !== undefined) return run;
    const at = threadMs();
    const started = { at, done: work(at).finally(() => (run = undefined)) };
    started.done.catch(() => undefined);
    run = started;
    return started;
  };

  const since = async (time: number): Promise<T> => {
    for (;;) {
      const { at, done } = current();
      if (at >= time) return done;
      await done.catch(() => undefined);
    }
  };

  const startNext = async (): Promise<T> => {
    await yieldToEventLoop();
    next = undefined;
    return since(threadMs());
  };

  return { since, fresh: () => (next ??= startNext()) };
};

/** A value for each of any number of names, at a cost only while somebody uses it. */
export const whileUsed = <V>(make: (name: string) => V) => {
  const used = new Map<string, { readonly value: V; users: number }>();
  return async <T>(name: string, use: (value: V) => Promise<T>): Promise<T> => {
    const entry = used.get(name) ?? { value: make(name), users: 0 };
    used.set(name, entry);
    entry.users += 1;
    try {
      return await use(entry.value);
    } finally {
      entry.users -= 1;
      if (entry.users === 0) used.delete(name);
    }
  };
};

/** Single flights by name. */
export const singleFlightBy = <T>(work: (name: string, at: number) => Promise<T>) => {
  const runsOf = whileUsed((name) => singleFlight((at) => work(name, at)));
  return { since: (name: string, time: number) => runsOf(name, (runs) => runs.since(time)) };
};

/** So many run at a time. The others wait in the order in which they asked. */
export const turns = (atOnce: number) => {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
};

/** `Promise.all` that settles only when all of them have, so that none keeps running unnoticed after a failure. */
export const settleAll = async <T>(work: readonly Promise<T>[]): Promise<readonly T[]> => {
  await Promise.allSettled(work);
  return Promise.all(work);
};
