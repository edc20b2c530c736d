import { signal } from '../signal';

/** Makes a number of parties wait for each other. One that leaves, because it has failed or is done, is not waited for. */
export const barrier = (parties: number) => {
  let missing = parties;
  const complete = signal();
  return () => {
    let isHere = false;
    const leave = (): void => {
      if (isHere) return;
      isHere = true;
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
