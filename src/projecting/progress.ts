import { monotonicMs } from '../async/clock';
import type { Position } from '../event-log/event-log';
import { codeOf } from '../fault';
import { generationName, type Generation } from '../read-models/read-models';
import { condition, type Condition } from '../async/condition';

/** Tracks how far generations have got, whichever process projects them. */
export interface Progress {
  /** Called when this process has advanced a generation. */
  moved(generation: string, position: Position, hasParked: boolean): void;
  /**
   * Waits until every generation that any process may read has reached a position. False: not in time. Reads the registry
   * after the wait, so that it also waits for generations switched to in the meantime. With no time, checks once.
   */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** False: no tenant was parked in the generation when it had reached this position or a later one. */
  mayPark(generation: Generation, position: Position): boolean;
}

export interface ProgressDependencies {
  /** The generations that any process may read, as of the last look at the registry. */
  readonly shown: () => readonly Generation[];
  readonly refresh: () => Promise<void>;
}

interface Waiter {
  readonly position: Position;
  readonly done: (isShown: boolean) => void;
  readonly failed: (error: unknown) => void;
}

/** Other processes do not report their progress, so the store is polled. */
export const POLL_MS = 15;
/** The registry seldom changes, so it is read before a waiter is answered, and otherwise only this often. */
const LOOK_MS = 10 * POLL_MS;

interface State extends ProgressDependencies {
  readonly known: Map<string, Position>;
  /** The generations that this process projects: when they last moved, and the last position with no tenant parked. */
  readonly own: Map<string, { readonly heardAt: number; readonly noneParkedAt: Position | undefined }>;
  readonly movement: Condition;
  readonly waiting: Set<Waiter>;
  isWatching: boolean;
}

const namesOf = ({ shown }: State): readonly string[] => shown().map(({ id }) => generationName(id));

/** Generations without a report from this process for this long: another process may project them. */
const silent = ({ own, shown }: State, forMs: number): readonly Generation[] =>
  shown().filter(({ id }) => monotonicMs() - (own.get(generationName(id))?.heardAt ?? -Infinity) >= forMs);

const learn = ({ known }: State, name: string, position: Position): void => {
  if (position > (known.get(name) ?? '')) known.set(name, position);
};

const isKnown = ({ known }: State, generations: readonly string[], position: Position): boolean =>
  generations.every((name) => (known.get(name) ?? '') >= position);

/** A removed generation has no progress; after the next look at the registry no one waits for it. */
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

/** False: no waiter's position has been reached yet. */
const answerReady = async (state: State): Promise<boolean> => {
  const before = namesOf(state);
  const ready = [...state.waiting].filter(({ position }) => isKnown(state, before, position));
  if (ready.length === 0) return false;
  await state.refresh();
  if (namesOf(state).every((name) => before.includes(name))) for (const { done } of ready) done(true);
  return true;
};

/** Runs until all waiters are answered. Must not yield after its last check, or it would miss a new waiter. */
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
 * All waiters share one loop: this process's own thread reports, and the store and the registry are polled once for all
 * of them. So a write costs the same however many are waiting.
 */
export const progress = (dependencies: ProgressDependencies): Progress => {
  const state: State = {
    ...dependencies,
    known: new Map(),
    own: new Map(),
    movement: condition(),
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
