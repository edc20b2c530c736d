import { threadMs } from '../async/clock';
import type { Head, LoggedEvent, Position } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { Advanced, Control, ReadModelSet } from '../read-models/read-models';
import { documentCache, type DocumentCache } from './document-cache';
import { batchOf, foldBatch, type Batch, type Folded, type Folding } from './fold-batch';
import type { ParkedTenant } from './tenant-progress';

/** The next events after a position, at most this many. None: the end of the log. */
export type ReadAfter = (after: Position | undefined, max: number) => Promise<readonly LoggedEvent[]>;

/** How far a set without a successor is, as committed or seen: a write up to here is shown. */
export interface Shown {
  readonly position: Position;
  /** How many tenants are parked in it. */
  readonly parked: number;
}

export interface Projection {
  /** Commits the next events, up to and including a position. */
  step(upTo?: Position): Promise<Step>;
  /** Goes on until there are no more events up to this position. */
  toEnd(upTo?: Position): Promise<'at_end' | 'superseded'>;
}

/**
 * `at_end`: there is nothing to project. `overtaken`: another process has projected in the meantime; the next step
 * follows it. `busy`: another process is projecting, and `shown` tells how far it is.
 */
export interface Step {
  readonly outcome: Advanced | 'at_end' | 'busy';
  /** The number of tenants' events committed. */
  readonly events: number;
  readonly shown?: Shown;
  /** The tenants parked by this step. */
  readonly parked: readonly ParkedTenant[];
}

export interface ProjectionOptions {
  /** The most events in one commit. */
  readonly maxEvents?: number;
  /** How long a commit may take. While it is undefined, nobody waits. */
  readonly sliceMs?: () => number | undefined;
  /** Runs after each step of `toEnd`. */
  readonly between?: (step: Step) => Promise<void> | void;
}

const MAX_EVENTS = 4_096;
/** Smaller commits would cost more: each writes every page that it touches. */
const MIN_EVENTS = 32;
const FIRST_EVENTS = 128;

/** How many events fit into a slice, as the last ones took. */
const sizing = ({ maxEvents = MAX_EVENTS, sliceMs = () => undefined }: ProjectionOptions) => {
  let size = Math.min(FIRST_EVENTS, maxEvents);
  return {
    size: (): number => (sliceMs() === undefined ? maxEvents : size),
    took: (events: number, ms: number): void => {
      const fits = Math.round((events * (sliceMs() ?? ms)) / Math.max(ms, 0.1));
      size = Math.min(maxEvents, Math.max(MIN_EVENTS, Math.min(2 * size, fits)));
    },
  };
};

/** What a projection knows of its set: the documents in the cache are those of commit `n`. */
interface Known {
  readonly n: number;
  readonly to: Head | undefined;
  readonly cache: DocumentCache;
}

const NOTHING = { events: 0, parked: [] };

const busyIfLocked = (error: unknown): 'busy' => {
  if (codeOf(error) !== 'read_models_busy') throw error;
  return 'busy';
};

const shownIn = ({ to, parked, next }: Control): { readonly shown?: Shown } =>
  next === undefined ? { shown: { position: to?.position ?? '', parked } } : {};

const steppingToEnd =
  (step: Projection['step'], { between }: ProjectionOptions): Projection['toEnd'] =>
  async (upTo) => {
    for (;;) {
      const done = await step(upTo);
      await between?.(done);
      if (done.outcome === 'at_end' || done.outcome === 'superseded') return done.outcome;
    }
  };

/**
 * Projects the log into a set. Several processes may do so at once: whoever wins a commit has read exactly the state
 * before it. Events are read and checked before `advance`, which may hold a lock.
 */
export const projection = (
  set: ReadModelSet,
  readAfter: ReadAfter,
  folding: Folding,
  options: ProjectionOptions = {},
): Projection => {
  const { size, took } = sizing(options);
  let known: Known | undefined;

  /** Commits a batch if the set is still where the batch begins. */
  const commit = async (before: Known, batch: Batch, to: Head): Promise<Step> => {
    let { cache } = before;
    let seen: Control | undefined;
    let folded: Folded | undefined;
    known = undefined;
    const outcome = await set
      .advance(async (now) => {
        // The cache holds documents of another state after commits of others, or if this runs once more.
        if (seen !== undefined || now.n !== before.n) cache = documentCache(set);
        [seen, folded] = [now, undefined];
        if (now.to?.position !== before.to?.position) return undefined;
        folded = await foldBatch(folding, cache, batch);
        return { to, writes: folded.writes, parked: now.parked + folded.parked.length };
      })
      .catch(busyIfLocked);
    if (outcome === 'busy') return { outcome, ...NOTHING, ...shownIn(await set.control()) };
    if (outcome !== 'done' || seen === undefined) return { outcome, ...NOTHING };
    if (folded === undefined) {
      known = { n: seen.n, to: seen.to, cache };
      return { outcome: 'overtaken', ...NOTHING, ...shownIn(seen) };
    }
    known = { n: seen.n + 1, to, cache };
    const shown = { position: to.position, parked: seen.parked + folded.parked.length };
    return { outcome, events: batch.length, shown, parked: folded.parked };
  };

  const step: Projection['step'] = async (upTo) => {
    const control = known === undefined ? await set.control() : undefined;
    if (control?.next !== undefined) return { outcome: 'superseded', ...NOTHING };
    const before = known ?? { n: control?.n ?? 0, to: control?.to, cache: documentCache(set) };
    const after = before.to?.position;
    const read = await readAfter(after, size());
    const due = upTo === undefined ? read : read.filter(({ position }) => position <= upTo);
    const last = due.at(-1);
    if (last === undefined) return { outcome: 'at_end', ...NOTHING };
    const batch = batchOf(due, folding.streams, after);
    const began = threadMs();
    const done = await commit(before, batch, { position: last.position, eventId: last.id });
    if (done.outcome === 'done') took(due.length, threadMs() - began);
    return done;
  };

  return { step, toEnd: steppingToEnd(step, options) };
};
