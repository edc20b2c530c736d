/** Counts the write points of a store from now on, and makes the k-th of them fail, once. */
export const countedFailure = () => {
  let left = Number.POSITIVE_INFINITY;
  let reached = 0;
  return {
    failAt: (k: number): void => {
      left = k;
      reached = 0;
    },
    reached: () => reached,
    onWrite: (): void => {
      reached += 1;
      left -= 1;
      if (left === 0) throw new Error('injected');
    },
  };
};
