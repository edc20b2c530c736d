import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Projector } from '../../projections/projector';
import { monotonicMs, pause } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { fault } from '../fault';
import { PARKED, type Generation, type ReadModels } from '../read-models/read-models';
import { fedBatch, liveFeed, type FedBatch, type Feed } from './feed';
import { PARKED_KEY } from './fold-batch';
import { openLiveGenerations, type LiveGeneration } from './live-generations';
import { progress } from './progress';
import { project, retryOlderParked, type ProjectionRun } from './projection-run';

export interface Projecting {
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

const LEASE = 'projecting';
const LEASE_MS = 2_500;
const RENEW_MS = 500;
const RETRY_MS = 500;

export const openProjecting = async (parts: ProjectingParts): Promise<Projecting> => {
  const { log, streams, readModels, program, onTrouble } = parts;
  const live = await openLiveGenerations(parts.projectors, readModels, log);
  const generations = live.map(({ generation }) => generation);
  const steps = progress();
  const me = `${hostname()} ${randomUUID().slice(0, 8)} ${process.pid}`;
  const ending = new AbortController();
  let running: Promise<unknown> = Promise.resolve();

  const runOf = (
    { projector, generation }: LiveGeneration,
    moved: (position: Position) => void,
  ): ProjectionRun => ({
    projector,
    generation,
    log,
    streams,
    program,
    now: () => new Date().toISOString(),
    moved: (position) => {
      steps.moved(generation, position);
      moved(position);
    },
  });

  /** Projects one generation until the lease is lost, through whatever goes wrong. */
  const keepProjecting = async (run: ProjectionRun, feed: Feed, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted)
      try {
        await retryOlderParked(run);
        await project(run, (after) => feed.from(after, signal));
      } catch (error) {
        onTrouble(`Projecting ${run.projector.name} stopped and is tried again.`, error);
        await pause(RETRY_MS, signal);
      }
  };

  /** True while the lease could be renewed; false as soon as it is lost. */
  const hold = async (): Promise<boolean> => {
    try {
      return await readModels.lease(LEASE, me, LEASE_MS);
    } catch (error) {
      onTrouble('The lease for projecting cannot be renewed.', error);
      return false;
    }
  };

  const leaseTerm = async (feed: Feed): Promise<void> => {
    const term = new AbortController();
    const signal = AbortSignal.any([term.signal, ending.signal]);
    const work = Promise.all(
      live.map((one) =>
        keepProjecting(
          runOf(one, () => undefined),
          feed,
          signal,
        ),
      ),
    );
    while (!ending.signal.aborted && (await hold())) await pause(RENEW_MS, ending.signal);
    term.abort();
    await work;
  };

  const serve = async (): Promise<void> => {
    const feed = liveFeed(log, streams, (error) =>
      onTrouble('The live feed broke and is tried again.', error),
    );
    while (!ending.signal.aborted) {
      if (await hold()) await leaseTerm(feed);
      else await pause(RENEW_MS / 2, ending.signal);
    }
    await feed.close();
    await readModels.release(LEASE, me).catch(() => undefined);
  };

  /** The log's events up to a position, cut there. */
  const upTo = (position: Position) =>
    async function* (after: Position | undefined): AsyncGenerator<FedBatch> {
      if (after !== undefined && after >= position) return;
      for await (const batch of log.readAll({ after })) {
        yield fedBatch(batch, streams);
        if ((batch.at(-1)?.position ?? '') >= position) return;
      }
    };

  const projectUpTo = async (position: Position, tell: (done: Position) => void): Promise<void> => {
    const renewing = setInterval(() => void hold(), RENEW_MS);
    try {
      for (const one of live) await project(runOf(one, tell), upTo(position));
    } finally {
      clearInterval(renewing);
      await readModels.release(LEASE, me);
    }
  };

  return {
    live,
    reader: (projection) => {
      const found = live.find(({ projector }) => projector.name === projection);
      if (found === undefined)
        throw fault('read_models_unavailable', `There is no projection ${projection}.`);
      return found.generation;
    },
    start: async () => {
      running = serve();
      running.catch((error: unknown) => onTrouble('Projecting ended.', error));
    },
    reached: (position, withinMs) => steps.reached(generations, position, withinMs),
    catchUp: async (position, withinMs, tell = () => undefined) => {
      const end = monotonicMs() + withinMs;
      for (;;) {
        if (await steps.reached(generations, position, 0)) return true;
        if (await hold()) {
          await projectUpTo(position, tell);
          return true;
        }
        const left = end - monotonicMs();
        if (left <= 0) return false;
        if (await steps.reached(generations, position, Math.min(RENEW_MS, left))) return true;
      }
    },
    isParked: async (tenantId) => {
      const found = await Promise.all(generations.map((one) => one.get(tenantId, PARKED, PARKED_KEY)));
      return found.some((document) => document !== undefined);
    },
    holder: () => readModels.leaseHolder(LEASE),
    stop: async () => {
      ending.abort();
      await running.catch(() => undefined);
    },
  };
};
