/** `Promise.all` that settles only when all of them have, so that none keeps running unnoticed after a failure. */
export const settleAll = async <T>(work: readonly Promise<T>[]): Promise<readonly T[]> => {
  await Promise.allSettled(work);
  return Promise.all(work);
};
