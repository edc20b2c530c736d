import { monotonicMs } from '../clock';
import type { Position } from '../event-log/event-log';
import type { Generation } from '../read-models/read-models';

/** Knows how far generations are, whoever projects them. */
export interface Progress {
  /** This process has just moved this generation. */
  moved(generation: Generation, position: Position): void;
  /** Waits until all of them show everything up to a position. False: not within the time. */
  reached(generations: readonly Generation[], position: Position, withinMs: number): Promise<boolean>;
}

/** Another process tells nothing: the store is asked. */
const POLL_MS = 15;

export const progress = (): Progress => {
  const known = new Map<Generation, Position>();
  const waiting = new Set<() => void>();

  const movement = (withinMs: number): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, withinMs);
      waiting.add(done);
    });

  const shows = async (generation: Generation, position: Position, asking: boolean): Promise<boolean> => {
    if ((known.get(generation) ?? '') >= position) return true;
    return asking && ((await generation.control()).applied ?? '') >= position;
  };

  /** What this process projects it hears of at once; only while it hears nothing does it ask the store. */
  const reachedOne = async (generation: Generation, position: Position, end: number): Promise<boolean> => {
    let askedAt = -Infinity;
    for (;;) {
      const asking = monotonicMs() - askedAt >= POLL_MS;
      if (asking) askedAt = monotonicMs();
      if (await shows(generation, position, asking)) return true;
      const left = end - monotonicMs();
      if (left <= 0) return false;
      await movement(Math.min(POLL_MS, left));
    }
  };

  return {
    moved: (generation, position) => {
      known.set(generation, position);
      for (const wake of waiting) wake();
    },
    reached: async (generations, position, withinMs) => {
      const end = monotonicMs() + withinMs;
      for (const generation of generations) if (!(await reachedOne(generation, position, end))) return false;
      return true;
    },
  };
};
