/** Runs the work when it is its turn. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

/** So many run at a time. The others wait in the order in which they asked. */
export const turns = (atOnce: number): Turns => {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  return async (work) => {
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
