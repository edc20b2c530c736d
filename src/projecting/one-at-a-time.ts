/**
 * The same work, one run at a time. Whoever asks while it runs gets the outcome of a run that begins afterwards, which
 * all of them share: so everybody's run begins after they asked.
 */
export const oneAtATime = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  const begin = async (): Promise<T> => {
    await running.catch(() => undefined);
    next = undefined;
    const run = work();
    running = run;
    return run;
  };
  return () => (next ??= begin());
};
