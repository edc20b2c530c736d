/** Waits for a condition, not for a time. */
export const until = async (
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
  what = 'the condition',
): Promise<void> => {
  const end = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`${what} did not come true within ${withinMs} ms.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
