import { codeOf } from '../fault';
import { pause, threadMs, yieldToEventLoop } from '../async/clock';
import { generationName } from '../read-models/read-models';
import type { Batches, Consumer } from './consumer';
import type { LiveGeneration } from './live-generations';
import { retryDue } from './retry-parked';
import { project, type Pace, type ProjectionRun } from './projection-run';

/** The runs of this process, one per projected generation, started and stopped as those change. */
export interface ProjectionRuns {
  /**
   * Starts missing runs and stops those no longer wanted. With `retry`, all runs start over and first retry the parked
   * tenants that it matches.
   */
  keep(wanted: readonly LiveGeneration[], retry?: RetryFilter): Promise<void>;
  stop(): Promise<void>;
}

/** Whether to retry this tenant. */
export type RetryFilter = (tenantId: string) => boolean;

interface Running {
  readonly ending: AbortController;
  readonly done: Promise<void>;
}

const RETRY_MS = 500;

/** A thread that others wait for projects in short slices. Longer ones cost less per event. */
const SHORT_SLICE_MS = 5;
const LONG_SLICE_MS = 40;

/**
 * Applications and their keys decide who may read, so their projections must not wait for other tenants' facts, which
 * are nearly all events. While they have something to do, the projections of facts pause between two slices.
 */
const isUrgent = ({ projector }: LiveGeneration): boolean => !projector.streams.includes('activity');

/** How long an urgent run that was behind may take to read its next batch. */
const READ_MS = 20;
/** A batch of this many events at least means that the run is behind. */
const MANY_EVENTS = 256;

/** Lets urgent runs go first, and runs one slice per turn of the event loop, so that others wait for at most one. */
const priorities = (isAwaited: () => boolean) => {
  /** Until when urgent runs are busy, on this thread's clock. */
  const busy = new Map<object, number>();
  const urgently = (batches: Batches): Batches =>
    async function* (after, abort) {
      const run = {};
      try {
        for await (const batch of batches(after, abort)) {
          busy.set(run, Infinity);
          yield batch;
          busy.set(run, batch.length < MANY_EVENTS ? 0 : threadMs() + READ_MS);
        }
      } finally {
        busy.delete(run);
      }
    };
  const isCalm = (): boolean => [...busy.values()].every((end) => end < threadMs());
  let last = Promise.resolve();
  const turn = (): Promise<void> => (last = last.then(yieldToEventLoop));
  const sliceMs = (): number => (isAwaited() ? SHORT_SLICE_MS : LONG_SLICE_MS);
  const pace: Pace = {
    sliceMs,
    turn: async () => {
      do await turn();
      while (!isCalm());
    },
  };
  const urgentPace: Pace = { sliceMs, turn };
  return (live: LiveGeneration, signal: AbortSignal) =>
    (run: ProjectionRun, batches: Batches): Promise<void> =>
      isUrgent(live)
        ? project(run, urgently(batches), { abort: signal, pace: urgentPace })
        : project(run, batches, { abort: signal, pace });
};

interface Dependencies {
  readonly runOf: (live: LiveGeneration) => Promise<ProjectionRun>;
  readonly consumer: Consumer;
  /** The requested retries that have not finished, by generation. A run that ends leaves its own to the next. */
  readonly retries: Map<string, RetryFilter>;
  readonly onError: (what: string, error: unknown) => void;
  /** Whether others wait for this thread now. */
  readonly isAwaited: () => boolean;
}

export const projectionRuns = (dependencies: Dependencies): ProjectionRuns => {
  const { runOf, consumer, retries, onError, isAwaited } = dependencies;
  const running = new Map<string, Running>();
  const projectingByPriority = priorities(isAwaited);

  /** Projects one generation until aborted, and retries after failures. */
  const keepProjecting = async (live: LiveGeneration, name: string, signal: AbortSignal): Promise<void> => {
    const projectAll = projectingByPriority(live, signal);
    while (!signal.aborted)
      try {
        const run = await runOf(live);
        // The other tenants do not wait until a parked one has caught up.
        await retryDue(run, retries.get(name), async () => {
          signal.throwIfAborted();
          await yieldToEventLoop();
          const head = await run.log.head();
          await projectAll(run, consumer.upTo(head?.position ?? ''));
        });
        retries.delete(name);
        await projectAll(run, consumer.follow);
      } catch (error) {
        if (signal.aborted) return;
        // A removed generation is no longer needed, and the registry will soon say so.
        if (codeOf(error) !== 'generation_removed') onError(`Projecting ${name} failed; retrying.`, error);
        await pause(RETRY_MS, signal);
      }
  };

  const start = (live: LiveGeneration, name: string, retry?: RetryFilter): void => {
    const left = retries.get(name);
    if (retry !== undefined) retries.set(name, (tenantId) => retry(tenantId) || left?.(tenantId) === true);
    const ending = new AbortController();
    running.set(name, { ending, done: keepProjecting(live, name, ending.signal) });
  };

  const end = async (names: readonly string[]): Promise<void> => {
    const ended = names.map((name) => running.get(name)).filter((run) => run !== undefined);
    for (const name of names) running.delete(name);
    for (const { ending } of ended) ending.abort();
    await Promise.all(ended.map(({ done }) => done));
  };

  return {
    keep: async (wanted, retry) => {
      const named = new Map(wanted.map((live) => [generationName(live.generation.id), live]));
      await end([...running.keys()].filter((name) => retry !== undefined || !named.has(name)));
      for (const [name, live] of named) if (!running.has(name)) start(live, name, retry);
    },
    stop: () => end([...running.keys()]),
  };
};
