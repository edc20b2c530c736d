import { monotonicMs } from '../clock';
import type { Position } from '../event-log/event-log';
import { generationName, type Generation } from '../read-models/read-models';
import { signal } from '../signal';

/** Knows how far generations are, whoever projects them. */
export interface Progress {
  /** This process has just moved the generation of this name. */
  moved(generation: string, position: Position): void;
  /**
   * Waits until everything that anybody may read shows all up to a position. False: not within the time. The pointers are
   * looked at after the wait: what was switched to meanwhile is waited for too. Without any time, the store is asked once.
   */
  reached(position: Position, withinMs: number): Promise<boolean>;
}

export interface ProgressParts {
  /** What anybody may read, as the pointers were last seen. */
  readonly shown: () => readonly Generation[];
  /** Looks at the pointers. */
  readonly refresh: () => Promise<void>;
}

interface Waiter {
  readonly position: Position;
  readonly done: (isShown: boolean) => void;
  readonly failed: (error: unknown) => void;
}

/** Another process reports nothing: the store is asked. */
const POLL_MS = 15;

/**
 * All who wait share one loop: what this process projects it is told, the store is asked once for all of them, and so
 * are the pointers. So a write costs the same however many wait beside it.
 */
export const progress = ({ shown, refresh }: ProgressParts): Progress => {
  const known = new Map<string, Position>();
  /** What this process projects. */
  const own = new Set<string>();
  const movement = signal();
  const waiting = new Set<Waiter>();
  let isWatching = false;

  const names = (): readonly string[] => shown().map(({ id }) => generationName(id));

  const isKnown = (generations: readonly string[], position: Position): boolean =>
    generations.every((name) => (known.get(name) ?? '') >= position);

  const ask = async (generations: readonly Generation[]): Promise<void> => {
    for (const generation of generations) {
      const { applied = '' } = await generation.control();
      const name = generationName(generation.id);
      if (applied > (known.get(name) ?? '')) known.set(name, applied);
    }
  };

  const isShownNow = async (position: Position): Promise<boolean> => {
    for (;;) {
      const before = names();
      await ask(shown());
      const isShown = isKnown(before, position);
      await refresh();
      const now = names();
      if (isShown && now.every((name) => before.includes(name))) return true;
      if (now.join() === before.join()) return false;
    }
  };

  /** False: nobody's position is known to be shown. */
  const answerReady = async (): Promise<boolean> => {
    const before = names();
    const ready = [...waiting].filter(({ position }) => isKnown(before, position));
    if (ready.length === 0) return false;
    await refresh();
    if (names().every((name) => before.includes(name))) for (const { done } of ready) done(true);
    return true;
  };

  /** Until all are answered. It must not end later than that by even a microtask: the next one to wait would not be seen. */
  const watch = async (): Promise<void> => {
    isWatching = true;
    try {
      await ask(shown().filter(({ id }) => !own.has(generationName(id))));
      for (let askedAt = monotonicMs(); waiting.size > 0;) {
        if (await answerReady()) continue;
        await movement.wait({ withinMs: POLL_MS });
        if (monotonicMs() - askedAt < POLL_MS) continue;
        await ask(shown());
        await refresh();
        askedAt = monotonicMs();
      }
    } catch (error) {
      for (const { failed } of waiting) failed(error);
    } finally {
      isWatching = false;
    }
  };

  const wait = (position: Position, withinMs: number): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        waiting.delete(waiter);
      };
      const done = (isShown: boolean): void => {
        end();
        resolve(isShown);
      };
      const failed = (error: unknown): void => {
        end();
        reject(error);
      };
      const waiter: Waiter = { position, done, failed };
      const timer = setTimeout(() => done(false), withinMs);
      waiting.add(waiter);
      if (!isWatching) void watch();
      else if (isKnown(names(), position)) movement.notify();
    });

  return {
    moved: (generation, position) => {
      own.add(generation);
      if (position > (known.get(generation) ?? '')) known.set(generation, position);
      movement.notify();
    },
    reached: (position, withinMs) => (withinMs <= 0 ? isShownNow(position) : wait(position, withinMs)),
  };
};
