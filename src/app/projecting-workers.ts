import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import type { Projector } from '../../projections/projector';
import { pause } from '../clock';
import type { Configuration } from '../configuration';
import { reportedFault } from '../fault';
import { holderName } from '../projecting/lease';
import type { ParkedReport } from '../projecting/parking';
import type { Elsewhere } from '../projecting/projecting';

/** What a projecting thread reports. Its inside is `projecting-worker.ts`. */
export type Report =
  | { readonly type: 'moved'; readonly generation: string; readonly position: string }
  | ({ readonly type: 'parked' } & ParkedReport)
  | { readonly type: 'trouble'; readonly what: string; readonly code: string; readonly message: string };

/** What a projecting thread works on. */
export interface Assignment {
  readonly configuration: Configuration;
  /** The names of the projections. */
  readonly projections: readonly string[];
  /** One name for all threads of this process: a thread that is started again has its leases at once. */
  readonly holder: string;
}

interface Group {
  readonly projectors: readonly Projector[];
  /** Batches live for a while: with a larger nursery most of them die in it. */
  readonly nurseryMb: number;
}

const followsActivity = ({ streams }: Projector): boolean => streams.includes('activity');

/**
 * Each group is projected by a thread of its own, which reads the log by itself. What is known about Applications and
 * their keys decides who may read: it must wait neither for other tenants' facts nor for a projection that is slow.
 */
const groups: readonly Group[] = [
  { projectors: projections.filter((one) => !followsActivity(one)), nurseryMb: 8 },
  { projectors: projections.filter(followsActivity), nurseryMb: 32 },
];

const RESTART_MS = 500;
/** One that waits for a store that is away is not waited for. It loses nothing: commits are whole or not there. */
const END_MS = 5_000;

/** Projects in threads of their own, so that nothing that is projected makes those wait who ask over HTTP. */
export const projectingThreads =
  (
    configuration: Configuration,
    onTrouble: (what: string, error: unknown) => void,
    onParked: (report: ParkedReport) => void = () => undefined,
  ): Elsewhere =>
  (moved) => {
    const ending = new AbortController();
    const holder = holderName();

    const receive = (report: Report): void => {
      if (report.type === 'moved') moved(report.generation, report.position);
      else if (report.type === 'parked') onParked(report);
      else onTrouble(report.what, reportedFault(report.code, report.message));
    };

    /** Until it ends, for whatever reason. */
    const runOnce = ({ projectors, nurseryMb }: Group): Promise<void> =>
      new Promise((resolve) => {
        const names = projectors.map(({ name }) => name);
        const assignment: Assignment = { configuration, projections: names, holder };
        const worker = new Worker(join(__dirname, 'projecting-worker.js'), {
          workerData: assignment,
          resourceLimits: { maxYoungGenerationSizeMb: nurseryMb },
        });
        let end: NodeJS.Timeout | undefined;
        const close = (): void => {
          worker.postMessage('close');
          end = setTimeout(() => void worker.terminate(), END_MS).unref();
        };
        ending.signal.addEventListener('abort', close);
        worker.on('message', receive);
        worker.on('error', (error) =>
          onTrouble(`The thread that projects ${names.join(' and ')} died and is started again.`, error),
        );
        worker.on('exit', () => {
          clearTimeout(end);
          ending.signal.removeEventListener('abort', close);
          resolve();
        });
      });

    const keepRunning = async (group: Group): Promise<void> => {
      while (!ending.signal.aborted) {
        await runOnce(group);
        await pause(RESTART_MS, ending.signal);
      }
    };
    const running = Promise.all(groups.map(keepRunning));

    return async () => {
      ending.abort();
      await running;
    };
  };
