import { monotonicMs } from '../clock';
import type { Position } from '../event-log/event-log';
import { generationName, type Generation } from '../read-models/read-models';
import { signal } from '../signal';

/** Knows how far generations are, whoever projects them. */
export interface Progress {
  /** This process has just moved the generation of this name. */
  moved(generation: string, position: Position): void;
  /**
   * Waits until all of them show everything up to a position. False: not within the time. `look` brings up to date which
   * ones that are. The last look comes after the wait: what has come meanwhile is waited for too.
   */
  reached(
    shown: () => readonly Generation[],
    position: Position,
    withinMs: number,
    look: () => Promise<void>,
  ): Promise<boolean>;
}

/** Another process tells nothing: the store is asked. */
const POLL_MS = 15;

const namesOf = (generations: readonly Generation[]): readonly string[] =>
  generations.map(({ id }) => generationName(id));

export const progress = (): Progress => {
  const known = new Map<string, Position>();
  const movement = signal();

  const shows = async (generation: Generation, position: Position, asking: boolean): Promise<boolean> => {
    if ((known.get(generationName(generation.id)) ?? '') >= position) return true;
    return asking && ((await generation.control()).applied ?? '') >= position;
  };

  const allShow = async (
    generations: readonly Generation[],
    position: Position,
    asking: boolean,
  ): Promise<boolean> => {
    for (const generation of generations) if (!(await shows(generation, position, asking))) return false;
    return true;
  };

  return {
    moved: (generation, position) => {
      known.set(generation, position);
      movement.notify();
    },
    /** What this process projects it hears of at once; only while it hears nothing does it ask the store. */
    reached: async (shown, position, withinMs, look) => {
      const end = monotonicMs() + withinMs;
      let askedAt = -Infinity;
      // Mostly it is shown a moment later, and looked at then.
      for (let mayLook = withinMs <= 0; ; mayLook = true) {
        // When the time is up, only what is known already counts.
        const isOver = withinMs > 0 && monotonicMs() >= end;
        const asking = !isOver && monotonicMs() - askedAt >= POLL_MS;
        if (asking) askedAt = monotonicMs();
        const before = namesOf(shown());
        const isShown = await allShow(shown(), position, asking);
        if (isShown || (asking && mayLook)) await look();
        const now = namesOf(shown());
        if (isShown && now.every((name) => before.includes(name))) return true;
        if (now.join() !== before.join()) {
          askedAt = -Infinity;
          continue;
        }
        const left = end - monotonicMs();
        if (left <= 0) return false;
        await movement.wait({ withinMs: Math.min(POLL_MS, left) });
      }
    },
  };
};
