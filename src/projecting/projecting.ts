import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../clock';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { fault } from '../fault';
import { generationName, type Reader, type ReadModels, type RetryRequests } from '../read-models/read-models';
import { together } from '../together';
import { consumer } from './consumer';
import { findParked, parkedReports, retryDue, type ParkedReport } from './parking';
import { projectingLeases, type ProjectingLeases } from './lease';
import type { LiveGeneration } from './live-generations';
import { progress, type Progress } from './progress';
import { project, runInto, type ProjectionRun } from './projection-run';
import { projectionRuns, type AskedFor } from './projection-runs';
import { openActiveGenerations, type ActiveGenerations } from './active-generations';

export interface Projecting {
  /** The generations that answer questions now. */
  readonly live: readonly LiveGeneration[];
  /** Answers questions about this projection. */
  reader(projection: string): Reader;
  /** Projects until it is stopped whatever no other process projects, and takes over from those that end. */
  start(): Promise<void>;
  /** Does `reader` give what may be read now? If not, `refresh` comes first. */
  isUpToDate(): boolean;
  /** False: the store could not be asked. */
  refresh(): Promise<boolean>;
  /** Does everything that anybody may read show all events up to this position? Waits for it. */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** For a process that does not stay: waits for whoever projects, and projects by itself if nobody does. */
  catchUp(position: Position, withinMs: number, onMoved?: (done: Position) => void): Promise<boolean>;
  /**
   * Is this tenant parked in any read model that anybody may read? With a position that was `reached`: was it parked when
   * they showed that?
   */
  isParked(tenantId: string, reached?: Position): Promise<boolean>;
  /** Who projects now, as far as is known. */
  holder(): Promise<string | undefined>;
  /** Tries one parked tenant or all of them again: by itself if nobody projects, else by asking whoever does. */
  retryParked(tenantId?: string): Promise<'done' | 'asked'>;
  stop(): Promise<void>;
}

export interface ProjectingParts extends LedgerLog {
  readonly readModels: ReadModels;
  readonly projectors: readonly Projector[];
  readonly program: string;
  /** What went wrong and is tried again. */
  readonly onError: (what: string, error: unknown) => void;
  /** Called after every commit of this process with what is visible now. */
  readonly onMoved?: Progress['moved'];
  /** Called with who is parked in what this process projects, at first and whenever that has changed. */
  readonly onParked?: (report: ParkedReport) => void;
  /** The name under which it holds its leases. */
  readonly holder?: string;
  /** They project instead of this thread. */
  readonly workers?: ProjectingWorkers | undefined;
}

/** Starts to project in threads of their own and reports what has moved; what it gives back stops them. */
export type ProjectingWorkers = (moved: Progress['moved']) => () => Promise<void>;

const RENEW_MS = 250;

/** While a generation that was switched to has not caught up with the one before, it is looked at more often. */
const SWITCHING_LOOK_MS = 50;

/** What the steps below share. */
interface Engine extends ProjectingParts {
  readonly active: ActiveGenerations;
  readonly steps: Progress;
  readonly leases: ProjectingLeases;
  readonly reports: ReturnType<typeof parkedReports>;
  readonly ending: AbortSignal;
}

const among = (all: readonly LiveGeneration[], names: ReadonlySet<string>): readonly LiveGeneration[] =>
  all.filter(({ projector }) => names.has(projector.name));

/** Without a tenant all of them are asked for. */
const isAskedFor =
  (wanted: string | undefined): AskedFor =>
  (tenantId) =>
    wanted === undefined || wanted === tenantId;

/** Of several requests since then only the last one's tenant is known: all are tried. */
const requestedSince = (known: RetryRequests, now: RetryRequests): AskedFor | undefined =>
  now.count === known.count
    ? undefined
    : isAskedFor(now.count === known.count + 1 ? now.tenantId : undefined);

const runOf = async (engine: Engine, { projector, generation }: LiveGeneration): Promise<ProjectionRun> => {
  const name = generationName(generation.id);
  const run = await runInto(engine, projector, generation, (position, hasParked) => {
    engine.steps.moved(name, position, hasParked);
    engine.onMoved?.(name, position, hasParked);
  });
  return { ...run, parkedChanged: () => engine.reports.changed(name) };
};

/** Follows the pointers for a while, or until there is something else to project. */
const followPointers = async (
  { active, readModels, ending, onError }: Engine,
  forMs: number,
): Promise<void> => {
  const { lookMs } = readModels;
  const names = (): string =>
    active
      .projected()
      .map(({ generation }) => generationName(generation.id))
      .join();
  const before = names();
  const end = monotonicMs() + forMs;
  let hasFailed = false;
  while (monotonicMs() < end && names() === before && !ending.aborted) {
    const soon = active.isUpToDate() || hasFailed ? lookMs : Math.min(lookMs, SWITCHING_LOOK_MS);
    await pause(Math.min(soon, Math.max(1, end - monotonicMs())), ending);
    hasFailed = await active.refresh().then(
      () => false,
      (error: unknown) => {
        onError('The pointers of the read models cannot be followed.', error);
        return true;
      },
    );
  }
};

/** As long as this process may project anything: every generation of that has its run. */
const projectWhileHeld = async (engine: Engine): Promise<void> => {
  const { log, streams, readModels, leases, active, reports, ending, onError } = engine;
  const events = consumer(log, streams, {
    onError: (error) => onError('The event log cannot be followed and is tried again.', error),
  });
  const runs = projectionRuns({ runOf: (one) => runOf(engine, one), consumer: events, onError });
  reports.begin();
  try {
    let known = await readModels.retryRequests();
    for (let held = await leases.hold(); held.size > 0 && !ending.aborted;) {
      const requests = await readModels.retryRequests().catch(() => known);
      await runs.keep(among(active.projected(), held), requestedSince(known, requests));
      known = requests;
      await reports.look(among(active.live(), held));
      await followPointers(engine, Math.max(RENEW_MS, readModels.lookMs));
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
      onError('Projecting stopped and is tried again.', error);
    }
    await followPointers(engine, engine.readModels.lookMs);
  }
  await leases.release();
};

/** This thread only follows the pointers. */
const projectInWorkers = async (engine: Engine, workers: ProjectingWorkers): Promise<void> => {
  const stop = workers(engine.steps.moved);
  while (!engine.ending.aborted) await followPointers(engine, engine.readModels.lookMs);
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
    const projecting = among(due, held).map(async (one) => {
      const run = await runOf(engine, one);
      const moved: ProjectionRun['moved'] = (done, hasParked) => {
        run.moved(done, hasParked);
        onMoved(done);
      };
      await project({ ...run, moved }, events);
    });
    await together(projecting);
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
    if (await engine.steps.reached(position, 0)) return true;
    const held = await engine.leases.hold();
    if (held.size > 0) await projectUpTo(engine, position, held, onMoved);
    if (held.size > 0 && (await engine.steps.reached(position, 0))) return true;
    const left = end - monotonicMs();
    if (left <= 0) return false;
    if (await engine.steps.reached(position, Math.min(RENEW_MS, left))) return true;
  }
};

const retryParked = async (engine: Engine, tenantId?: string): Promise<'done' | 'asked'> => {
  const { leases, active, readModels, projectors } = engine;
  const held = await leases.hold();
  try {
    for (const one of among(active.projected(), held))
      await retryDue(await runOf(engine, one), isAskedFor(tenantId));
  } finally {
    await leases.release();
  }
  if (held.size === projectors.length) return 'done';
  await readModels.requestRetry(tenantId);
  return 'asked';
};

export const openProjecting = async (parts: ProjectingParts): Promise<Projecting> => {
  const { log, readModels, projectors, onError, workers } = parts;
  const active = await openActiveGenerations(projectors, readModels, log);
  const ending = new AbortController();
  const engine: Engine = {
    ...parts,
    active,
    steps: progress(active),
    leases: projectingLeases(readModels, projectors, onError, parts.holder),
    reports: parkedReports(parts.onParked ?? (() => undefined)),
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
      running = workers === undefined ? projectInThisThread(engine) : projectInWorkers(engine, workers);
      running.catch((error: unknown) => onError('Projecting ended.', error));
    },
    // Whoever follows the pointers all the time reports that they cannot be.
    refresh: () =>
      active.refresh().then(
        () => true,
        () => false,
      ),
    isUpToDate: active.isUpToDate,
    reached: engine.steps.reached,
    catchUp: (position, withinMs, onMoved = () => undefined) => catchUp(engine, position, withinMs, onMoved),
    isParked: async (tenantId, reached) => {
      const asked = active
        .shown()
        .filter((one) => reached === undefined || engine.steps.mayPark(one, reached));
      const found = await Promise.all(asked.map((one) => findParked(one.reader, tenantId)));
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
