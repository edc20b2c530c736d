import { condition } from '../async/condition';

/** Makes a number of parties wait for each other. A party that leaves, because it failed or is done, counts as arrived. */
export const barrier = (parties: number) => {
  let missing = parties;
  const complete = condition();
  return () => {
    let hasArrived = false;
    const leave = (): void => {
      if (hasArrived) return;
      hasArrived = true;
      missing -= 1;
      complete.notify();
    };
    return {
      arrive: async (): Promise<void> => {
        leave();
        while (missing > 0) await complete.wait();
      },
      leave,
    };
  };
};
