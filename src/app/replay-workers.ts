import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Projector } from '../../projections/projector';
import type { Configuration } from '../configuration';
import { reportedFault } from '../fault';
import type { Difference } from '../projecting/compare';
import type { Rebuilt, RebuildOptions, RebuildStep } from '../projecting/rebuild';
import type { Verified } from '../projecting/verify';

/** What a rebuild switches to all the same. */
export type Accepted = Pick<RebuildOptions, 'acceptDifferences' | 'acceptParked'>;

/** The work of one worker (`replay-worker.ts`). */
export type ReplayWork =
  | {
      readonly do: 'rebuild';
      readonly projections: readonly string[];
      readonly options: Accepted;
    }
  | { readonly do: 'verify'; readonly projections: readonly string[]; readonly tenantId: string | undefined };

/** An expected failure has a code, a bug a stack. */
interface Failure {
  readonly code?: string;
  readonly message: string;
  readonly stack?: string | undefined;
}

/** The messages from a worker. */
export type ReplayReport =
  | { readonly type: 'step'; readonly projection: string; readonly step: RebuildStep }
  | { readonly type: 'progress'; readonly what: string }
  | { readonly type: 'difference'; readonly projection: string; readonly difference: Difference }
  | ({ readonly type: 'error'; readonly what: string } & Failure)
  | { readonly type: 'done'; readonly projection: string; readonly outcome: unknown }
  | ({ readonly type: 'failed'; readonly projection: string } & Failure);

/** Callbacks for the messages. A rebuild reports steps, a verification progress, and both report differences. */
interface Listeners {
  readonly onError: (what: string, error: unknown) => void;
  readonly onStep?: (projection: string, step: RebuildStep) => void;
  readonly onProgress?: (what: string) => void;
  readonly onDifference?: (projection: string, difference: Difference) => void;
}

const errorOf = ({ code, message, stack }: Failure): Error =>
  code === undefined ? Object.assign(new Error(message), { stack }) : reportedFault(code, message);

/**
 * With a larger young generation, most batches are garbage before they would be promoted. Little lives longer: the limit
 * on the old generation makes the collector start earlier.
 */
const HEAP = { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 512 };

/**
 * Most events are activity, so each projection that follows it gets its own worker, up to the number of processors. The
 * other projections join the last one.
 */
export const spread = (
  projectors: readonly Projector[],
  processors = availableParallelism(),
): readonly (readonly string[])[] => {
  const isHeavy = ({ streams }: Projector): boolean => streams.includes('activity');
  const heavy = projectors.filter(isHeavy);
  const groups = Array.from({ length: Math.max(1, Math.min(processors, heavy.length)) }, (): string[] => []);
  heavy.forEach(({ name }, i) => groups[i % groups.length]?.push(name));
  groups.at(-1)?.push(...projectors.filter((projector) => !isHeavy(projector)).map(({ name }) => name));
  return groups;
};

type Outcomes<T> = Map<string, PromiseSettledResult<T>>;

/** A projection that is done stays done, even if the cleanup after it fails. */
const receive = <T>(report: ReplayReport, outcomes: Outcomes<T>, listeners: Listeners): void => {
  switch (report.type) {
    case 'done':
      return void outcomes.set(report.projection, { status: 'fulfilled', value: report.outcome as T });
    case 'failed':
      if (outcomes.has(report.projection)) return;
      return void outcomes.set(report.projection, { status: 'rejected', reason: errorOf(report) });
    case 'error':
      return listeners.onError(report.what, errorOf(report));
    case 'step':
      return listeners.onStep?.(report.projection, report.step);
    case 'progress':
      return listeners.onProgress?.(report.what);
    case 'difference':
      return listeners.onDifference?.(report.projection, report.difference);
  }
};

/** The outcomes of one worker, by projection. Projections that it did not finish count as failed. */
const inWorker = <T>(
  configuration: Configuration,
  work: ReplayWork,
  listeners: Listeners,
): Promise<Outcomes<T>> =>
  new Promise((resolve) => {
    const outcomes: Outcomes<T> = new Map();
    let message = 'The replaying worker ended before it was done.';
    const worker = new Worker(join(__dirname, 'replay-worker.js'), {
      workerData: { configuration, work },
      resourceLimits: HEAP,
    });
    worker.on('message', (report: ReplayReport) => receive(report, outcomes, listeners));
    worker.on('error', (error) => (message = `The replaying worker died: ${error.message}`));
    worker.on('exit', () => {
      for (const projection of work.projections)
        receive({ type: 'failed', projection, code: 'failed', message }, outcomes, listeners);
      resolve(outcomes);
    });
  });

/** Returns the outcomes in the order of the projectors. */
const inWorkers = async <T>(
  configuration: Configuration,
  projectors: readonly Projector[],
  workOf: (projections: readonly string[]) => ReplayWork,
  listeners: Listeners,
): Promise<PromiseSettledResult<T>[]> => {
  if (projectors.length === 0) return [];
  const workers = spread(projectors).map((names) => inWorker<T>(configuration, workOf(names), listeners));
  const outcomes = new Map((await Promise.all(workers)).flatMap((perWorker) => [...perWorker]));
  return projectors.map(({ name }) => outcomes.get(name) as PromiseSettledResult<T>);
};

/** Rebuilds projections in parallel worker threads. One that fails does not stop the others. */
export const rebuildInWorkers = (
  configuration: Configuration,
  projectors: readonly Projector[],
  options: Accepted,
  listeners: Omit<Listeners, 'onProgress'>,
): Promise<PromiseSettledResult<Rebuilt>[]> =>
  inWorkers(
    configuration,
    projectors,
    (names) => ({ do: 'rebuild', projections: names, options }),
    listeners,
  );

/** Verifies projections in parallel, each against its own replay. Throws the first failure and reports the others. */
export const verifyInWorkers = async (
  configuration: Configuration,
  projectors: readonly Projector[],
  tenantId: string | undefined,
  listeners: Omit<Listeners, 'onStep'>,
): Promise<readonly Verified[]> => {
  const outcomes = await inWorkers<Verified>(
    configuration,
    projectors,
    (names) => ({ do: 'verify', projections: names, tenantId }),
    listeners,
  );
  const failed = projectors.flatMap(({ name }, i) => {
    const outcome = outcomes[i];
    return outcome?.status === 'rejected' ? [{ name, reason: outcome.reason as Error }] : [];
  });
  for (const { name, reason } of failed.slice(1)) listeners.onError(`${name} was not verified.`, reason);
  if (failed[0] !== undefined) throw failed[0].reason;
  return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
};
