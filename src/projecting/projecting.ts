import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../async/clock';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault } from '../fault';
import { generationName, type Reader, type ReadModels, type RetryRequests } from '../read-models/read-models';
import { settleAll } from '../async/settle-all';
import { consumer } from './consumer';
import { findParked, type ParkedTenant } from './parked-tenants';
import { retryDue } from './retry-parked';
import { projectingLeases, type ProjectingLeases } from './lease';
import type { LiveGeneration } from './live-generations';
import { progress, type Progress } from './progress';
import { project, runInto, type ProjectionRun } from './projection-run';
import { projectionRuns, type RetryFilter } from './projection-runs';
import { openActiveGenerations, type ActiveGenerations } from './active-generations';
import { removeFormerlyLive } from './prune';

export interface Projecting {
  /** The generations that answer queries now. */
  readonly live: readonly LiveGeneration[];
  reader(projection: string): Reader;
  /** Creates what is missing and projects, until stopped, whatever no other process projects, and takes over from processes that end. */
  start(): Promise<void>;
  /** Whether `reader` may be used now. If not, call `refresh` first. */
  isUpToDate(): boolean;
  /** False: the store could not be reached. */
  refresh(): Promise<boolean>;
  /** Waits until every read model that any process may read has reached this position. */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** For commands: creates what is missing, and waits for the process that projects, or projects if there is none. */
  catchUp(position: Position, withinMs: number, onMoved?: (done: Position) => void): Promise<boolean>;
  /**
   * Whether this tenant is parked in any read model that any process may read. With a position that was `reached`:
   * whether it was parked at that point.
   */
  isParked(tenantId: string, reached?: Position): Promise<boolean>;
  /** The process that projects now, as far as known. */
  holder(): Promise<string | undefined>;
  /** Retries one parked tenant or all: itself if no process is projecting, otherwise by a request to the one that is. */
  retryParked(tenantId?: string): Promise<'done' | 'asked'>;
  stop(): Promise<void>;
}

export interface ProjectingDependencies extends LedgerLog {
  readonly readModels: ReadModels;
  readonly projectors: readonly Projector[];
  readonly program: string;
  /** Called with failures that are retried. */
  readonly onError: (what: string, error: unknown) => void;
  /** Called after every commit of this process, when it is visible. */
  readonly onMoved?: Progress['moved'];
  /** Called for each projection in which this process parks a tenant. */
  readonly onParked?: (tenant: ParkedTenant) => void;
  /** Whether others wait for this thread now, so that it should project in short slices. */
  readonly isAwaited?: () => boolean;
  /** The holder name for its leases. */
  readonly holder?: string;
  /** If given, it projects instead of this thread, and live generations that are damaged are replaced at the start. */
  readonly thread?: ProjectingThread | undefined;
}

/** Starts projecting in another thread, which reports its progress. Returns a function that stops that. */
export type ProjectingThread = (moved: Progress['moved']) => () => Promise<void>;

const RENEW_MS = 250;

/** The polling interval while a new live generation has not caught up with the one before. */
const SWITCHING_LOOK_MS = 50;

interface Engine extends ProjectingDependencies {
  readonly active: ActiveGenerations;
  readonly progress: Progress;
  readonly leases: ProjectingLeases;
  /** The requested retries that have not finished, by generation. */
  readonly retries: Map<string, RetryFilter>;
  readonly ending: AbortSignal;
}

const among = (all: readonly LiveGeneration[], names: ReadonlySet<string>): readonly LiveGeneration[] =>
  all.filter(({ projector }) => names.has(projector.name));

/** Undefined: all tenants. */
const retryFilter =
  (wanted: string | undefined): RetryFilter =>
  (tenantId) =>
    wanted === undefined || wanted === tenantId;

/** Of several requests only the tenant of the last is known, so then all tenants are retried. */
const requestedSince = (known: RetryRequests, now: RetryRequests): RetryFilter | undefined =>
  now.count === known.count
    ? undefined
    : retryFilter(now.count === known.count + 1 ? now.tenantId : undefined);

const runOf = async (engine: Engine, { projector, generation }: LiveGeneration): Promise<ProjectionRun> => {
  const name = generationName(generation.id);
  const run = await runInto(engine, projector, generation, (position, hasParked) => {
    engine.progress.moved(name, position, hasParked);
    engine.onMoved?.(name, position, hasParked);
  });
  return { ...run, parked: engine.onParked };
};

/** Follows the registry for a while, or until the set of projected generations changes. */
const followRegistry = async (
  { active, readModels, ending, onError }: Engine,
  forMs: number,
): Promise<void> => {
  const { pollMs } = readModels;
  const names = (): string =>
    active
      .projected()
      .map(({ generation }) => generationName(generation.id))
      .join();
  const before = names();
  const end = monotonicMs() + forMs;
  let hasFailed = false;
  while (monotonicMs() < end && names() === before && !ending.aborted) {
    const intervalMs = active.isUpToDate() || hasFailed ? pollMs : Math.min(pollMs, SWITCHING_LOOK_MS);
    await pause(Math.min(intervalMs, Math.max(1, end - monotonicMs())), ending);
    hasFailed = await active.refresh().then(
      () => false,
      (error: unknown) => {
        onError('The registry of the read models cannot be followed.', error);
        return true;
      },
    );
  }
};

/** Keeps one run per generation for as long as this process holds any lease to project. */
const projectWhileHeld = async (engine: Engine): Promise<void> => {
  const { log, streams, readModels, projectors, leases, active, retries, ending, onError } = engine;
  const { isAwaited = () => false } = engine;
  const events = consumer(log, streams, {
    onError: (error) => onError('Following the event log failed; retrying.', error),
  });
  const runs = projectionRuns({
    runOf: (live) => runOf(engine, live),
    consumer: events,
    retries,
    onError,
    isAwaited,
  });
  try {
    let known = (active.state() ?? (await readModels.state())).retries;
    for (let held = await leases.hold(); held.size > 0 && !ending.aborted;) {
      const state = active.state();
      const requests = state?.retries ?? known;
      await runs.keep(among(active.projected(), held), requestedSince(known, requests));
      known = requests;
      const ours = projectors.filter(({ name }) => held.has(name));
      await removeFormerlyLive(readModels, ours, state?.generations ?? []).catch((error: unknown) =>
        onError('A generation that is no longer live cannot be removed.', error),
      );
      await followRegistry(engine, Math.max(RENEW_MS, readModels.pollMs));
      held = await leases.hold();
    }
  } finally {
    await runs.stop();
    await events.close();
  }
};

const projectInThisThread = async (engine: Engine): Promise<void> => {
  const { leases, ending, onError } = engine;
  while (!ending.aborted) {
    try {
      if ((await leases.hold()).size > 0) await projectWhileHeld(engine);
    } catch (error) {
      onError('Projecting failed; retrying.', error);
    }
    await followRegistry(engine, engine.readModels.pollMs);
  }
  await leases.release();
};

/** This thread itself only follows the registry. */
const projectElsewhere = async (engine: Engine, start: ProjectingThread): Promise<void> => {
  const stop = start(engine.progress.moved);
  while (!engine.ending.aborted) await followRegistry(engine, engine.readModels.pollMs);
  await stop();
};

const projectUpTo = async (
  engine: Engine,
  position: Position,
  held: ReadonlySet<string>,
  onMoved: (done: Position) => void,
): Promise<void> => {
  const { log, streams, leases, active } = engine;
  const renewing = setInterval(() => void leases.hold(), RENEW_MS);
  const shared = consumer(log, streams);
  try {
    const events = shared.upTo(position);
    const shown = active.shown();
    const due = active.projected().filter(({ generation }) => shown.includes(generation));
    const projecting = among(due, held).map(async (live) => {
      const run = await runOf(engine, live);
      const moved: ProjectionRun['moved'] = (done, hasParked) => {
        run.moved(done, hasParked);
        onMoved(done);
      };
      await project({ ...run, moved }, events);
    });
    await settleAll(projecting);
  } finally {
    clearInterval(renewing);
    await shared.close();
    await leases.release();
  }
};

const catchUp = async (
  engine: Engine,
  position: Position,
  withinMs: number,
  onMoved: (done: Position) => void,
): Promise<boolean> => {
  const end = monotonicMs() + withinMs;
  for (;;) {
    if (await engine.progress.reached(position, 0)) return true;
    const held = await engine.leases.hold();
    if (held.size > 0) await projectUpTo(engine, position, held, onMoved);
    if (held.size > 0 && (await engine.progress.reached(position, 0))) return true;
    const left = end - monotonicMs();
    if (left <= 0) return false;
    if (await engine.progress.reached(position, Math.min(RENEW_MS, left))) return true;
  }
};

const retryParked = async (engine: Engine, tenantId?: string): Promise<'done' | 'asked'> => {
  const { leases, active, readModels, projectors } = engine;
  const held = await leases.hold();
  try {
    for (const live of among(active.projected(), held))
      await retryDue(await runOf(engine, live), retryFilter(tenantId));
  } finally {
    await leases.release();
  }
  if (held.size === projectors.length) return 'done';
  await readModels.requestRetry(tenantId);
  return 'asked';
};

export const openProjecting = async (dependencies: ProjectingDependencies): Promise<Projecting> => {
  const { log, readModels, projectors, onError, thread } = dependencies;
  const active = await openActiveGenerations(projectors, readModels, log, onError);
  const provide = (): Promise<void> => active.provide(thread === undefined ? undefined : onError);
  const ending = new AbortController();
  const engine: Engine = {
    ...dependencies,
    active,
    progress: progress(active),
    leases: projectingLeases(readModels, projectors, onError, dependencies.holder),
    retries: new Map(),
    ending: ending.signal,
  };
  let running: Promise<unknown> = Promise.resolve();
  return {
    get live() {
      return active.live();
    },
    reader: (projection) => {
      const found = active.live().find(({ projector }) => projector.name === projection);
      if (found === undefined)
        throw fault('read_models_unavailable', `There is no projection ${projection}.`);
      return found.generation.reader;
    },
    start: async () => {
      await provide();
      running = thread === undefined ? projectInThisThread(engine) : projectElsewhere(engine, thread);
      running.catch((error: unknown) => onError('Projecting ended.', error));
    },
    // The loop that follows the registry reports failures.
    refresh: () =>
      active.refresh().then(
        () => true,
        () => false,
      ),
    isUpToDate: active.isUpToDate,
    reached: engine.progress.reached,
    catchUp: async (position, withinMs, onMoved = () => undefined) => {
      await provide();
      return catchUp(engine, position, withinMs, onMoved);
    },
    isParked: async (tenantId, reached) => {
      const candidates = active
        .shown()
        .filter((generation) => reached === undefined || engine.progress.mayPark(generation, reached));
      const found = await Promise.all(candidates.map(({ reader }) => findParked(reader, tenantId)));
      return found.some((document) => document !== undefined);
    },
    holder: () => engine.leases.holder(),
    retryParked: (tenantId) => retryParked(engine, tenantId),
    stop: async () => {
      ending.abort();
      await running.catch(() => undefined);
    },
  };
};
