import { join } from 'node:path';
import { Worker, type ResourceLimits } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import type { Projector } from '../../projections/projector';
import { pause } from '../clock';
import type { Configuration } from '../configuration';
import { reportedFault } from '../fault';
import { holderName } from '../projecting/lease';
import type { ParkedReport } from '../projecting/parking';
import type { Progress } from '../projecting/progress';
import type { ProjectingWorkers } from '../projecting/projecting';

/** What a worker (`projecting-worker.ts`) works on. */
export interface Assignment {
  readonly configuration: Configuration;
  /** The names of the projections. */
  readonly projections: readonly string[];
  /** One name for all workers of this process: a worker that is started again has its leases at once. */
  readonly holder: string;
}

export type Move = Parameters<Progress['moved']>;

/** What a worker reports. */
export type WorkerReport =
  | { readonly type: 'moved'; readonly moves: readonly Move[] }
  | ({ readonly type: 'parked' } & ParkedReport)
  | { readonly type: 'error'; readonly what: string; readonly code: string; readonly message: string };

interface Group {
  readonly projectors: readonly Projector[];
  readonly heap: ResourceLimits;
}

const followsActivity = ({ streams }: Projector): boolean => streams.includes('activity');

/**
 * Batches live for a while: in a larger young generation most of them die young. The limit on the old generation is far
 * above what is needed; it makes the collector begin in time.
 */
const HEAP = { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 320 };

/**
 * Each group has a worker of its own, which reads the log by itself. What is known about Applications and their keys
 * decides who may read: it must wait neither for other tenants' facts nor for a projection that is slow. Nearly all
 * events are facts: what follows them shares one worker, so that they are read and decoded once.
 */
const groups: readonly Group[] = [
  { projectors: projections.filter((one) => !followsActivity(one)), heap: { maxYoungGenerationSizeMb: 8 } },
  { projectors: projections.filter(followsActivity), heap: HEAP },
];

const RESTART_MS = 500;

interface Work {
  readonly group: Group;
  readonly assignment: Assignment;
  readonly receive: (report: WorkerReport) => void;
  readonly onError: (what: string, error: unknown) => void;
  readonly ending: AbortSignal;
}

/** Runs a worker until it ends, for whatever reason. */
const runOnce = ({ group, assignment, receive, onError, ending }: Work): Promise<void> =>
  new Promise((resolve) => {
    const worker = new Worker(join(__dirname, 'projecting-worker.js'), {
      workerData: assignment,
      resourceLimits: group.heap,
    });
    // It ends by itself: terminated from here while it is inside SQLite, it would take the whole process down.
    const close = (): void => worker.postMessage('close');
    ending.addEventListener('abort', close);
    worker.on('message', receive);
    worker.on('error', (error) =>
      onError(
        `The worker that projects ${assignment.projections.join(' and ')} died and is started again.`,
        error,
      ),
    );
    worker.on('exit', () => {
      ending.removeEventListener('abort', close);
      resolve();
    });
  });

const keepRunning = async (work: Work): Promise<void> => {
  while (!work.ending.aborted) {
    await runOnce(work);
    await pause(RESTART_MS, work.ending);
  }
};

/** Projects in threads of their own, so that projecting never makes HTTP requests wait. */
export const projectingWorkers =
  (
    configuration: Configuration,
    onError: (what: string, error: unknown) => void,
    onParked: (report: ParkedReport) => void = () => undefined,
  ): ProjectingWorkers =>
  (moved) => {
    const ending = new AbortController();
    const holder = holderName();
    const receive = (report: WorkerReport): void => {
      switch (report.type) {
        case 'moved':
          return report.moves.forEach((move) => moved(...move));
        case 'parked':
          return onParked(report);
        case 'error':
          return onError(report.what, reportedFault(report.code, report.message));
      }
    };
    const running = Promise.all(
      groups.map((group) => {
        const names = group.projectors.map(({ name }) => name);
        const assignment: Assignment = { configuration, projections: names, holder };
        return keepRunning({ group, assignment, receive, onError, ending: ending.signal });
      }),
    );
    return async () => {
      ending.abort();
      await running;
    };
  };
