import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Projector } from '../../projections/projector';
import type { Configuration } from '../configuration';
import { reportedFault } from '../fault';
import type { Difference } from '../projecting/compare';
import type { Rebuilt, RebuildOptions, RebuildStep } from '../projecting/rebuild';
import type { Verified } from '../projecting/verify';

/** What a thread is to do. Its inside is `replay-worker.ts`. */
export type ReplayWork =
  | {
      readonly do: 'rebuild';
      readonly projections: readonly string[];
      readonly options: Omit<RebuildOptions, 'tell'>;
    }
  | { readonly do: 'verify'; readonly projections: readonly string[]; readonly tenantId?: string };

/** What went wrong: an expected failure has a code, a mistake of ours the place where it was made. */
interface Failure {
  readonly code?: string;
  readonly message: string;
  readonly stack?: string | undefined;
}

const errorOf = ({ code, message, stack }: Failure): Error =>
  code === undefined ? Object.assign(new Error(message), { stack }) : reportedFault(code, message);

export type ReplayTold =
  | { readonly tell: 'step'; readonly projection: string; readonly step: RebuildStep }
  | { readonly tell: 'progress'; readonly what: string }
  | { readonly tell: 'difference'; readonly projection: string; readonly difference: Difference }
  | ({ readonly tell: 'trouble'; readonly what: string } & Failure)
  | { readonly tell: 'done'; readonly projection: string; readonly outcome: unknown }
  | ({ readonly tell: 'failed'; readonly projection: string } & Failure);

type OnTrouble = (what: string, error: unknown) => void;

/**
 * Batches live for a while: with a larger nursery most of them die in it. What lives longer is little, and told so, it is
 * tidied up in time.
 */
const HEAP = { maxYoungGenerationSizeMb: 24, maxOldGenerationSizeMb: 512 };

/** Most events are activity: those who follow it have most of the work, and each of them a thread while there are enough. */
export const spread = (
  projectors: readonly Projector[],
  threads = availableParallelism(),
): readonly (readonly string[])[] => {
  const isHeavy = ({ streams }: Projector): boolean => streams.includes('activity');
  const heavy = projectors.filter(isHeavy);
  const groups = Array.from({ length: Math.max(1, Math.min(threads, heavy.length)) }, (): string[] => []);
  [...heavy, ...projectors.filter((projector) => !isHeavy(projector))].forEach(({ name }, i) =>
    groups[i % groups.length]?.push(name),
  );
  return groups;
};

/** The outcomes of one thread's work, by projection. What it could not finish has failed. */
const inThread = <T>(
  configuration: Configuration,
  work: ReplayWork,
  hear: (told: ReplayTold) => void,
): Promise<ReadonlyMap<string, PromiseSettledResult<T>>> =>
  new Promise((resolve) => {
    const outcomes = new Map<string, PromiseSettledResult<T>>();
    let end = 'The replaying thread ended before it was done.';
    /** What is done stays done, though tidying up after it failed. */
    const fail = (projection: string, failure: Failure): void => {
      if (outcomes.has(projection)) return;
      outcomes.set(projection, { status: 'rejected', reason: errorOf(failure) });
    };
    const worker = new Worker(join(__dirname, 'replay-worker.js'), {
      workerData: { configuration, work },
      resourceLimits: HEAP,
    });
    worker.on('message', (told: ReplayTold) => {
      if (told.tell === 'done')
        outcomes.set(told.projection, { status: 'fulfilled', value: told.outcome as T });
      else if (told.tell === 'failed') fail(told.projection, told);
      else hear(told);
    });
    worker.on('error', (error) => (end = `The replaying thread died: ${error.message}`));
    worker.on('exit', () => {
      for (const name of work.projections) fail(name, { code: 'failed', message: end });
      resolve(outcomes);
    });
  });

/** The outcomes in the order of the projectors. */
const inThreads = async <T>(
  configuration: Configuration,
  projectors: readonly Projector[],
  workOf: (projections: readonly string[]) => ReplayWork,
  hear: (told: ReplayTold) => void,
): Promise<PromiseSettledResult<T>[]> => {
  const threads = spread(projectors).map((names) => inThread<T>(configuration, workOf(names), hear));
  const outcomes = new Map((await Promise.all(threads)).flatMap((some) => [...some]));
  return projectors.map(({ name }) => outcomes.get(name) as PromiseSettledResult<T>);
};

const troubled = (onTrouble: OnTrouble, told: ReplayTold): void => {
  if (told.tell === 'trouble') onTrouble(told.what, errorOf(told));
};

/** Rebuilds several at the same time, in threads that write for themselves. One that fails does not stop the others. */
export const rebuildInThreads = (
  configuration: Configuration,
  projectors: readonly Projector[],
  options: Omit<RebuildOptions, 'tell'>,
  hear: { readonly onTrouble: OnTrouble; readonly onStep: (projection: string, step: RebuildStep) => void },
): Promise<PromiseSettledResult<Rebuilt>[]> =>
  inThreads(
    configuration,
    projectors,
    (names) => ({ do: 'rebuild', projections: names, options }),
    (told) =>
      told.tell === 'step' ? hear.onStep(told.projection, told.step) : troubled(hear.onTrouble, told),
  );

/** Verifies several at the same time, each against a replay of its own. */
export const verifyInThreads = async (
  configuration: Configuration,
  projectors: readonly Projector[],
  tenantId: string | undefined,
  hear: {
    readonly onTrouble: OnTrouble;
    readonly onProgress: (what: string) => void;
    readonly onDifference: (projection: string, difference: Difference) => void;
  },
): Promise<readonly Verified[]> => {
  const outcomes = await inThreads<Verified>(
    configuration,
    projectors,
    (names) => ({ do: 'verify', projections: names, ...(tenantId === undefined ? {} : { tenantId }) }),
    (told) => {
      if (told.tell === 'progress') hear.onProgress(told.what);
      else if (told.tell === 'difference') hear.onDifference(told.projection, told.difference);
      else troubled(hear.onTrouble, told);
    },
  );
  return outcomes.map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason as Error;
    return outcome.value;
  });
};
