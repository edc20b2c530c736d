import { monotonicMs } from '../clock';
import type { Position } from '../event-log/event-log';
import { codeOf } from '../fault';
import { generationName, type Generation } from '../read-models/read-models';
import { signal, type Signal } from '../signal';

/** Knows how far generations are, whoever projects them. */
export interface Progress {
  /** This process has just moved the generation of this name, and some tenant is parked there or none is. */
  moved(generation: string, position: Position, hasParked: boolean): void;
  /**
   * Waits until everything that anybody may read shows all up to a position. False: not within the time. The pointers are
   * looked at after the wait: what was switched to in the meantime is waited for too. Without any time, the store is asked once.
   */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** False: nobody was parked in a generation when it had reached this position, or a later one. */
  mayPark(generation: Generation, position: Position): boolean;
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
/** The pointers, which seldom move, are looked at before anybody is answered, and besides that only this often. */
const LOOK_MS = 150;

interface State extends ProgressParts {
  readonly known: Map<string, Position>;
  /** What this process projects: when it last said so, and the last position at which nobody was parked there. */
  readonly own: Map<string, { readonly heardAt: number; readonly noneParkedAt: Position | undefined }>;
  readonly movement: Signal;
  readonly waiting: Set<Waiter>;
  isWatching: boolean;
}

const namesOf = ({ shown }: State): readonly string[] => shown().map(({ id }) => generationName(id));

/** What this process does not project, or has not heard of for so long: another one may have taken it over. */
const silent = ({ own, shown }: State, forMs: number): readonly Generation[] =>
  shown().filter(({ id }) => monotonicMs() - (own.get(generationName(id))?.heardAt ?? -Infinity) >= forMs);

const learn = ({ known }: State, name: string, position: Position): void => {
  if (position > (known.get(name) ?? '')) known.set(name, position);
};

const isKnown = ({ known }: State, generations: readonly string[], position: Position): boolean =>
  generations.every((name) => (known.get(name) ?? '') >= position);

/** One that has been removed shows nothing, and the pointers are to be looked at: nobody waits for it any more. */
const ask = async (state: State, generations: readonly Generation[]): Promise<'all' | 'some_removed'> => {
  let asked: 'all' | 'some_removed' = 'all';
  const shown = await Promise.all(
    generations.map(({ reader }) =>
      reader.applied().catch((error: unknown) => {
        if (codeOf(error) !== 'generation_removed') throw error;
        asked = 'some_removed';
        return undefined;
      }),
    ),
  );
  generations.forEach(({ id }, i) => learn(state, generationName(id), shown[i] ?? ''));
  return asked;
};

const isShownNow = async (state: State, position: Position): Promise<boolean> => {
  for (;;) {
    const before = namesOf(state);
    await ask(state, state.shown());
    const isShown = isKnown(state, before, position);
    await state.refresh();
    const now = namesOf(state);
    if (isShown && now.every((name) => before.includes(name))) return true;
    if (now.join() === before.join()) return false;
  }
};

/** False: nobody's position is known to be shown. */
const answerReady = async (state: State): Promise<boolean> => {
  const before = namesOf(state);
  const ready = [...state.waiting].filter(({ position }) => isKnown(state, before, position));
  if (ready.length === 0) return false;
  await state.refresh();
  if (namesOf(state).every((name) => before.includes(name))) for (const { done } of ready) done(true);
  return true;
};

/** Until all are answered. It must not end later than that by even a microtask: the next one to wait would not be seen. */
const watch = async (state: State): Promise<void> => {
  state.isWatching = true;
  try {
    await ask(state, silent(state, Infinity));
    let [askedAt, lookedAt] = [monotonicMs(), monotonicMs()];
    while (state.waiting.size > 0) {
      if (await answerReady(state)) continue;
      await state.movement.wait({ withinMs: POLL_MS });
      if (monotonicMs() - askedAt < POLL_MS) continue;
      const asked = await ask(state, silent(state, POLL_MS));
      askedAt = monotonicMs();
      if (asked === 'all' && askedAt - lookedAt < LOOK_MS) continue;
      await state.refresh();
      lookedAt = monotonicMs();
    }
  } catch (error) {
    for (const { failed } of state.waiting) failed(error);
  } finally {
    state.isWatching = false;
  }
};

const wait = (state: State, position: Position, withinMs: number): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      state.waiting.delete(waiter);
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
    state.waiting.add(waiter);
    if (!state.isWatching) void watch(state);
    else if (isKnown(state, namesOf(state), position)) state.movement.notify();
  });

/**
 * All who wait share one loop: this process's own workers report, the store is asked once for all of them, and so
 * are the pointers. So a write costs the same however many wait beside it.
 */
export const progress = (parts: ProgressParts): Progress => {
  const state: State = {
    ...parts,
    known: new Map(),
    own: new Map(),
    movement: signal(),
    waiting: new Set(),
    isWatching: false,
  };
  return {
    moved: (generation, position, hasParked) => {
      state.own.set(generation, {
        heardAt: monotonicMs(),
        noneParkedAt: hasParked ? undefined : position,
      });
      learn(state, generation, position);
      state.movement.notify();
    },
    reached: (position, withinMs) =>
      withinMs <= 0 ? isShownNow(state, position) : wait(state, position, withinMs),
    mayPark: ({ id }, position) => (state.own.get(generationName(id))?.noneParkedAt ?? '') < position,
  };
};
