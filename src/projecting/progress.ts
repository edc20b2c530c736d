import { monotonicMs } from '../clock';
import type { Position } from '../event-log/event-log';
import type { Generation } from '../read-models/read-models';

/** Knows how far generations are, whoever projects them. */
export interface Progress {
  /** This process has just moved something. */
  moved(): void;
  /** Waits until all of them show everything up to a position. False: not within the time. */
  reached(generations: readonly Generation[], position: Position, withinMs: number): Promise<boolean>;
}

/** Another process tells nothing: it is looked after. */
const POLL_MS = 15;

export const progress = (): Progress => {
  const waiting = new Set<() => void>();

  const movement = (withinMs: number): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(POLL_MS, withinMs));
      waiting.add(done);
    });

  const shows = async (generation: Generation, position: Position): Promise<boolean> =>
    ((await generation.control()).applied ?? '') >= position;

  return {
    moved: () => {
      for (const wake of waiting) wake();
    },
    reached: async (generations, position, withinMs) => {
      const end = monotonicMs() + withinMs;
      for (const generation of generations)
        while (!(await shows(generation, position))) {
          const left = end - monotonicMs();
          if (left <= 0) return false;
          await movement(left);
        }
      return true;
    },
  };
};
