import { join } from 'node:path';
import { Worker, type ResourceLimits } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import type { Projector } from '../../projections/projector';
import { pause } from '../async/clock';
import type { Configuration } from '../configuration';
import { reportedFault } from '../fault';
import { holderName } from '../read-models/lease-holder';
import type { ParkedReport } from '../projecting/parked-tenants';
import type { Progress } from '../projecting/progress';
import type { ProjectingWorkers } from '../projecting/projecting';

/** The `workerData` of a worker (`projecting-worker.ts`). */
export interface Assignment {
  readonly configuration: Configuration;
  readonly projections: readonly string[];
  /** The same for all workers of this process, so that a restarted worker gets its leases back at once. */
  readonly holder: string;
}

export type Move = Parameters<Progress['moved']>;

/** The messages from a worker. */
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
 * With a larger young generation, most batches are garbage before they would be promoted. The old generation never needs
 * this much: its limit only makes the collector start earlier.
 */
const HEAP = { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 320 };

/**
 * Each group has its own worker, which reads the log independently. Applications and their keys decide who may read, so
 * their projections must wait neither for other tenants' facts nor for a slow projection. Nearly all events are facts, so
 * the projections that follow them share one worker, which reads and decodes each event once.
 */
const groups: readonly Group[] = [
  {
    projectors: projections.filter((projector) => !followsActivity(projector)),
    heap: { maxYoungGenerationSizeMb: 8 },
  },
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

/** Runs a worker until it exits, for whatever reason. */
const runOnce = ({ group, assignment, receive, onError, ending }: Work): Promise<void> =>
  new Promise((resolve) => {
    const worker = new Worker(join(__dirname, 'projecting-worker.js'), {
      workerData: assignment,
      resourceLimits: group.heap,
    });
    // Asks it to exit: `terminate()` while it is inside SQLite would crash the whole process.
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

/** Projects in worker threads, so that projecting never delays HTTP requests. */
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
