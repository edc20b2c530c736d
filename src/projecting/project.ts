import type { ComposedProjector } from '../../projections/projector';
import { isoNow, threadMs } from '../async/clock';
import { readSetAside } from '../event-log/codec';
import type { Batch, Head, LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { codeOf } from '../fault';
import type { Advanced, Control, ReadModels, ReadModelSet } from '../read-models/read-models';
import {
  tenantBatchOf,
  documentCache,
  foldBatch,
  type TenantBatch,
  type DocumentCache,
  type Folded,
  type Folding,
  type ParkedTenant,
} from './fold-batch';

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
  const commit = async (before: Known, batch: TenantBatch, to: Head): Promise<Step> => {
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
    const batch = tenantBatchOf(due, folding.streams, after);
    const began = threadMs();
    const done = await commit(before, batch, { position: last.position, eventId: last.id });
    if (done.outcome === 'done') took(due.length, threadMs() - began);
    return done;
  };

  return { step, toEnd: steppingToEnd(step, options) };
};

export interface ReplayDependencies extends LedgerLog {
  readonly readModels: ReadModels;
  readonly projector: ComposedProjector;
  readonly program: string;
  readonly abort?: AbortSignal;
}

/** Reads the log after a position, in batches of any size. */
export type ReadLog = (after: Position | undefined) => AsyncIterable<Batch> | Iterable<Batch>;

/** With what the operator has set aside until now. */
export const readFolding = async (
  dependencies: Pick<ReplayDependencies, 'log' | 'streams' | 'projector' | 'program'>,
): Promise<Folding> => {
  const { streams, projector, program } = dependencies;
  return { streams, projector, program, now: isoNow, setAside: await readSetAside(dependencies) };
};

/** A read ends here, whatever the number of its events. */
const MAX_BYTES = 4_194_304;

/** Reads a log in pieces. What a read has returned beyond a piece is kept for the next one. */
export const readingInPieces = (read: ReadLog): ReadAfter => {
  let end: Position | undefined;
  let rest: readonly LoggedEvent[] = [];
  const readOn = async (after: Position | undefined, max: number): Promise<readonly LoggedEvent[]> => {
    const events: LoggedEvent[] = [];
    let bytes = 0;
    for await (const batch of read(after)) {
      events.push(...batch);
      for (const event of batch) bytes += event.bytes ?? 0;
      if (events.length >= max || bytes >= MAX_BYTES) break;
    }
    return events;
  };
  return async (after, max) => {
    const events = after === end && rest.length > 0 ? rest : await readOn(after, max);
    rest = events.slice(max);
    end = events.at(Math.min(max, events.length) - 1)?.position;
    return events.slice(0, max);
  };
};

/** Projects into the live set, whichever that is. Undefined: there is none. */
export const liveProjection = (
  dependencies: ReplayDependencies,
  options: ProjectionOptions,
): ((upTo?: Position) => Promise<Step | undefined>) => {
  const { log, readModels } = dependencies;
  let open: Projection | undefined;
  const openLive = async (): Promise<Projection | undefined> => {
    const live = await readModels.live();
    if (live === undefined) return undefined;
    const readAfter = readingInPieces((after) => log.readAll({ after }));
    return projection(live.set, readAfter, await readFolding(dependencies), options);
  };
  return async (upTo) => {
    const current = (open ??= await openLive());
    open = undefined;
    const step = await current?.step(upTo);
    if (step?.outcome !== 'superseded') open = current;
    return step;
  };
};
