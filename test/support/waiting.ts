import { pause } from '../../src/clock';
import { codeOf } from '../../src/fault';

/** Waits for a condition, looking again every few milliseconds. */
export const until = async (
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
  what = String(condition),
): Promise<void> => {
  const end = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`It did not come true within ${withinMs} ms: ${what}`);
    await pause(5);
  }
};

/** The code that a promise is rejected with, or the value's absence of one. */
export const refusedWith = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => 'no refusal',
    (error: unknown) => codeOf(error) ?? String(error),
  );

/** A promise with its ends in hand. */
export const signal = <T = void>() => {
  let give!: (value: T) => void;
  const given = new Promise<T>((resolve) => (give = resolve));
  return { given, give };
};
