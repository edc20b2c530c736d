const closers: (() => unknown)[] = [];

/** What was opened last is closed first. */
export const closeAll = async (): Promise<void> => {
  for (const close of closers.splice(0).toReversed()) await close();
};
afterEach(closeAll);

export const closeAfterwards = (close: () => unknown): void => void closers.push(close);
