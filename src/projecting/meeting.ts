/** A place where so many wait for each other. Who leaves, because it has failed or is through, is not waited for. */
export const meeting = (expected: number) => {
  let missing = expected;
  let begin!: () => void;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  return () => {
    let isHere = false;
    const arrive = (): void => {
      if (isHere) return;
      isHere = true;
      missing -= 1;
      if (missing === 0) begin();
    };
    return {
      come: (): Promise<void> => {
        arrive();
        return begun;
      },
      leave: arrive,
    };
  };
};
