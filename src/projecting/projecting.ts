import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { fault } from '../fault';
import { PARKED, type Generation, type ReadModels } from '../read-models/read-models';
import { eventsUpTo, liveFeed } from './feed';
import { PARKED_KEY } from './fold-batch';
import { projectingLease } from './lease';
import type { LiveGeneration } from './live-generations';
import { progress } from './progress';
import { project, retryAllParked, type ProjectionRun } from './projection-run';
import { projectionRuns } from './projection-runs';
import { readSetAside } from './set-aside';
import { openTracks } from './tracks';

export interface Projecting {
  /** The generations that answer questions now. */
  readonly live: readonly LiveGeneration[];
  /** The generation of this projection that answers questions. */
  reader(projection: string): Generation;
  /** Projects for ever, while this process holds the lease; waits for the lease while another one does. */
  start(): Promise<void>;
  /** Do the live read models show everything up to this position? Waits for it. */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** For a process that does not go on: waits for whoever projects, and projects by itself if nobody does. */
  catchUp(position: Position, withinMs: number, tell?: (done: Position) => void): Promise<boolean>;
  /** Is this tenant parked in any live read model? */
  isParked(tenantId: string): Promise<boolean>;
  /** Who projects now, as far as anybody can say. */
  holder(): Promise<string | undefined>;
  /** Tries parked tenants again: by itself if nobody projects, else by asking whoever does. */
  retryParked(): Promise<'done' | 'asked'>;
  stop(): Promise<void>;
}

export interface ProjectingParts {
  readonly log: EventLog;
  readonly streams: Streams;
  readonly readModels: ReadModels;
  readonly projectors: readonly Projector[];
  readonly program: string;
  /** What went wrong and is tried again. */
  readonly onTrouble: (what: string, error: unknown) => void;
}

/** What the operator may ask of whoever projects. */
const RETRY = 'retry';
const RENEW_MS = 250;

export const openProjecting = async (parts: ProjectingParts): Promise<Projecting> => {
  const { log, streams, readModels, program, onTrouble } = parts;
  const tracks = await openTracks(parts.projectors, readModels, log);
  const steps = progress();
  const lease = projectingLease(readModels, onTrouble);
  const ending = new AbortController();
  let running: Promise<unknown> = Promise.resolve();

  const runOf = async ({ projector, generation }: LiveGeneration): Promise<ProjectionRun> => ({
    projector,
    generation,
    log,
    streams,
    program,
    isSetAside: await readSetAside(log, streams),
    now: () => new Date().toISOString(),
    moved: (position) => steps.moved(generation, position),
  });

  const look = async (): Promise<void> => {
    try {
      await tracks.refresh();
    } catch (error) {
      onTrouble('The pointers of the read models cannot be followed.', error);
    }
  };

  /** While this process holds the lease: every generation that is to be projected has its run. */
  const leaseTerm = async (): Promise<void> => {
    const feed = liveFeed(log, streams, (error) =>
      onTrouble('The live feed broke and is tried again.', error),
    );
    const runs = projectionRuns({ runOf, feed, onTrouble });
    let asked = await readModels.asked(RETRY);
    while (!ending.signal.aborted && (await lease.hold())) {
      const askings = await readModels.asked(RETRY).catch(() => asked);
      await runs.keep(tracks.projected(), askings !== asked);
      asked = askings;
      await pause(RENEW_MS, ending.signal);
      await look();
    }
    await runs.stop();
    await feed.close();
  };

  const serve = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      if (await lease.hold()) await leaseTerm();
      else await pause(RENEW_MS / 2, ending.signal);
      await look();
    }
    await lease.release();
  };

  const projectUpTo = async (position: Position, tell: (done: Position) => void): Promise<void> => {
    const renewing = setInterval(() => void lease.hold(), RENEW_MS);
    try {
      for (const one of tracks.live()) {
        const run = await runOf(one);
        const moved = (done: Position): void => {
          run.moved(done);
          tell(done);
        };
        await project({ ...run, moved }, eventsUpTo(log, streams, position));
      }
    } finally {
      clearInterval(renewing);
      await lease.release();
    }
  };

  const reached = (position: Position, withinMs: number): Promise<boolean> =>
    steps.reached(tracks.shown, position, withinMs);

  return {
    get live() {
      return tracks.live();
    },
    reader: (projection) => {
      const found = tracks.live().find(({ projector }) => projector.name === projection);
      if (found === undefined)
        throw fault('read_models_unavailable', `There is no projection ${projection}.`);
      return found.generation;
    },
    start: async () => {
      running = serve();
      running.catch((error: unknown) => onTrouble('Projecting ended.', error));
    },
    reached,
    catchUp: async (position, withinMs, tell = () => undefined) => {
      const end = monotonicMs() + withinMs;
      for (;;) {
        if (await reached(position, 0)) return true;
        if (await lease.hold()) {
          await projectUpTo(position, tell);
          return true;
        }
        const left = end - monotonicMs();
        if (left <= 0) return false;
        if (await reached(position, Math.min(RENEW_MS, left))) return true;
      }
    },
    isParked: async (tenantId) => {
      const live = tracks.live().map(({ generation }) => generation);
      const found = await Promise.all(live.map((one) => one.get(tenantId, PARKED, PARKED_KEY)));
      return found.some((document) => document !== undefined);
    },
    holder: () => lease.holder(),
    retryParked: async () => {
      if (!(await lease.hold())) {
        await readModels.ask(RETRY);
        return 'asked';
      }
      try {
        for (const one of tracks.projected()) await retryAllParked(await runOf(one), true);
      } finally {
        await lease.release();
      }
      return 'done';
    },
    stop: async () => {
      ending.abort();
      await running.catch(() => undefined);
    },
  };
};
