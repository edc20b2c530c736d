/** Waits for all of them, also when one fails, so that none goes on unseen; then fails with the first failure. */
export const together = async <T>(work: readonly Promise<T>[]): Promise<readonly T[]> => {
  await Promise.allSettled(work);
  return Promise.all(work);
};
