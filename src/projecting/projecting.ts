import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { fault } from '../fault';
import { generationName, type Asked, type Generation, type ReadModels } from '../read-models/read-models';
import { together } from '../together';
import { consumer } from './consumer';
import { findParked, parkedReports, retryDue, type ParkedReport } from './parking';
import { projectingLeases } from './lease';
import type { LiveGeneration } from './live-generations';
import { progress } from './progress';
import { project, runInto, type ProjectionRun } from './projection-run';
import { projectionRuns, type AskedFor } from './projection-runs';
import { openTracks } from './tracks';

export interface Projecting {
  /** The generations that answer questions now. */
  readonly live: readonly LiveGeneration[];
  /** The generation of this projection that answers questions. */
  reader(projection: string): Generation;
  /** Projects for ever what no other process projects, and takes over from those that end. */
  start(): Promise<void>;
  /** To be awaited before a question, then `reader` gives what may be read: undefined where nothing is to be awaited. */
  upToDate(): Promise<void> | undefined;
  /** Does everything that anybody may read show all up to this position? Waits for it. */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** For a process that does not go on: waits for whoever projects, and projects by itself if nobody does. */
  catchUp(position: Position, withinMs: number, tell?: (done: Position) => void): Promise<boolean>;
  /** Is this tenant parked in any read model that anybody may read? */
  isParked(tenantId: string): Promise<boolean>;
  /** Who projects now, as far as anybody can say. */
  holder(): Promise<string | undefined>;
  /** Tries one parked tenant or all of them again: by itself if nobody projects, else by asking whoever does. */
  retryParked(tenantId?: string): Promise<'done' | 'asked'>;
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
  /** Called after every commit of this process with what it shows now. */
  readonly onMoved?: Moved;
  /** Called with who is parked in what this process projects, at first and whenever that has changed. */
  readonly onParked?: (report: ParkedReport) => void;
  /** The name under which it holds its leases. */
  readonly holder?: string;
  /** Projects instead of this thread. */
  readonly elsewhere?: Elsewhere | undefined;
}

type Moved = (generation: string, position: Position) => void;

/** Begins to project, tells what has moved, and gives back how to end it. */
export type Elsewhere = (moved: Moved) => () => Promise<void>;

/** What the operator may ask of whoever projects. */
const RETRY = 'retry';
const RENEW_MS = 250;

/** A switch is noticed so soon: writes wait until what was switched to is projected. */
const LOOK_MS = 100;

const among = (all: readonly LiveGeneration[], names: ReadonlySet<string>): readonly LiveGeneration[] =>
  all.filter(({ projector }) => names.has(projector.name));

/** The empty text stands for all of them. */
const isAskedFor =
  (wanted: string): AskedFor =>
  (tenantId) =>
    wanted === '' || wanted === tenantId;

/** Of several askings since then only the last one's tenant is known: all are tried. */
const askedSince = (known: Asked, now: Asked): AskedFor | undefined =>
  now.times === known.times ? undefined : isAskedFor(now.times === known.times + 1 ? now.note : '');

export const openProjecting = async (parts: ProjectingParts): Promise<Projecting> => {
  const { log, streams, readModels, onTrouble } = parts;
  const tracks = await openTracks(parts.projectors, readModels, log);
  const steps = progress();
  const leases = projectingLeases(readModels, parts.projectors, onTrouble, parts.holder);
  const ending = new AbortController();
  const reports = parkedReports(parts.onParked ?? (() => undefined));
  let running: Promise<unknown> = Promise.resolve();

  const runOf = async ({ projector, generation }: LiveGeneration): Promise<ProjectionRun> => {
    const name = generationName(generation.id);
    const moved = (position: Position): void => {
      steps.moved(name, position);
      parts.onMoved?.(name, position);
    };
    const run = await runInto(parts, projector, generation, moved);
    return { ...run, parkedChanged: () => reports.changed(name) };
  };

  /** Follows the pointers for a while, or until there is something else to project. */
  const follow = async (forMs: number): Promise<void> => {
    const names = (): string =>
      tracks
        .projected()
        .map(({ generation }) => generationName(generation.id))
        .join();
    const before = names();
    for (let left = forMs; left > 0 && names() === before && !ending.signal.aborted; left -= LOOK_MS) {
      await pause(Math.min(LOOK_MS, left), ending.signal);
      await tracks
        .refresh()
        .catch((error) => onTrouble('The pointers of the read models cannot be followed.', error));
    }
  };

  /** While this process may project anything: every generation of that has its run. */
  const leaseTerm = async (): Promise<void> => {
    const events = consumer(log, streams, (error) =>
      onTrouble('The event log cannot be followed and is tried again.', error),
    );
    const runs = projectionRuns({ runOf, consumer: events, onTrouble });
    reports.begin();
    try {
      let known = await readModels.asked(RETRY);
      for (let held = await leases.hold(); held.size > 0 && !ending.signal.aborted;) {
        const asked = await readModels.asked(RETRY).catch(() => known);
        await runs.keep(among(tracks.projected(), held), askedSince(known, asked));
        known = asked;
        await reports.look(among(tracks.live(), held));
        await follow(RENEW_MS);
        held = await leases.hold();
      }
    } finally {
      await runs.stop();
      await events.close();
    }
  };

  const serve = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      try {
        if ((await leases.hold()).size > 0) await leaseTerm();
      } catch (error) {
        onTrouble('Projecting stopped and is tried again.', error);
      }
      await follow(LOOK_MS);
    }
    await leases.release();
  };

  /** Follows the pointers, while another thread does the rest. */
  const serveElsewhere = async (elsewhere: Elsewhere): Promise<void> => {
    const end = elsewhere(steps.moved);
    while (!ending.signal.aborted) await follow(LOOK_MS);
    await end();
  };

  const projectUpTo = async (
    position: Position,
    held: ReadonlySet<string>,
    tell: (done: Position) => void,
  ): Promise<void> => {
    const renewing = setInterval(() => void leases.hold(), RENEW_MS);
    try {
      const events = consumer(log, streams).upTo(position);
      const fill = async (one: LiveGeneration): Promise<void> => {
        const run = await runOf(one);
        const moved = (done: Position): void => {
          run.moved(done);
          tell(done);
        };
        await project({ ...run, moved }, events);
      };
      const shown = tracks.shown();
      const isShown = ({ generation }: LiveGeneration): boolean => shown.includes(generation);
      await together(among(tracks.projected().filter(isShown), held).map(fill));
    } finally {
      clearInterval(renewing);
      await leases.release();
    }
  };

  const reached = (position: Position, withinMs: number): Promise<boolean> =>
    steps.reached(tracks.shown, position, withinMs, tracks.refresh);

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
      running = parts.elsewhere === undefined ? serve() : serveElsewhere(parts.elsewhere);
      running.catch((error: unknown) => onTrouble('Projecting ended.', error));
    },
    // What cannot be followed is told by who follows it all the time; questions go on with what they have.
    upToDate: () => tracks.upToDate()?.catch(() => undefined),
    reached,
    catchUp: async (position, withinMs, tell = () => undefined) => {
      const end = monotonicMs() + withinMs;
      for (;;) {
        if (await reached(position, 0)) return true;
        const held = await leases.hold();
        if (held.size > 0) await projectUpTo(position, held, tell);
        if (held.size > 0 && (await reached(position, 0))) return true;
        const left = end - monotonicMs();
        if (left <= 0) return false;
        if (await reached(position, Math.min(RENEW_MS, left))) return true;
      }
    },
    isParked: async (tenantId) => {
      const found = await Promise.all(tracks.shown().map((one) => findParked(one, tenantId)));
      return found.some((document) => document !== undefined);
    },
    holder: () => leases.holder(),
    retryParked: async (tenantId = '') => {
      const held = await leases.hold();
      try {
        for (const one of among(tracks.projected(), held))
          await retryDue(await runOf(one), isAskedFor(tenantId));
      } finally {
        await leases.release();
      }
      if (held.size === parts.projectors.length) return 'done';
      await readModels.ask(RETRY, tenantId);
      return 'asked';
    },
    stop: async () => {
      ending.abort();
      await running.catch(() => undefined);
    },
  };
};
