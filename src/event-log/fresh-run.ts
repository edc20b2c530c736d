/**
 * Runs the work once at a time, for all who ask meanwhile. Whoever asks while it runs gets the outcome of the next run:
 * that one sees everything that happened before the question.
 */
export const freshRun = <T>(work: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | undefined;
  return async () => {
    await running?.catch(() => undefined);
    return (running ??= work().finally(() => (running = undefined)));
  };
};
