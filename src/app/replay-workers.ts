import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Projector } from '../../projections/projector';
import { errorOf, startThread, type Failure } from '../async/thread';
import type { Configuration } from '../configuration';
import type { Difference } from '../projecting/compare';
import {
  takeRebuildLeases,
  type RebuildLeases,
  type Rebuilt,
  type RebuildOptions,
  type RebuildStep,
} from '../projecting/rebuild';
import type { Verified } from '../projecting/verify';
import { openStores } from './adapters';

/** Whether a rebuild switches in spite of what it found. */
export type Accepted = Pick<RebuildOptions, 'acceptDifferences'>;

/** What a worker (`replay-worker.ts`) is asked to do about one projection. */
export type ReplayRequest =
  | { readonly do: 'rebuild'; readonly projection: string; readonly options: Accepted }
  | { readonly do: 'verify'; readonly projection: string; readonly tenantId: string | undefined };

/** What a worker reports meanwhile. */
export type ReplayReport =
  | { readonly type: 'step'; readonly projection: string; readonly step: RebuildStep }
  | { readonly type: 'progress'; readonly what: string }
  | { readonly type: 'difference'; readonly projection: string; readonly difference: Difference }
  | { readonly type: 'error'; readonly what: string; readonly failure: Failure };

/** Callbacks for the reports. A rebuild reports steps, a verification progress, and both report differences. */
interface Listeners {
  readonly onError: (what: string, error: unknown) => void;
  readonly onStep?: (projection: string, step: RebuildStep) => void;
  readonly onProgress?: (what: string) => void;
  readonly onDifference?: (projection: string, difference: Difference) => void;
  /** Ends the workers. What they have built is kept. */
  readonly abort?: AbortSignal;
}

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

const receive = (report: ReplayReport, listeners: Listeners): void => {
  switch (report.type) {
    case 'error':
      return listeners.onError(report.what, errorOf(report.failure));
    case 'step':
      return listeners.onStep?.(report.projection, report.step);
    case 'progress':
      return listeners.onProgress?.(report.what);
    case 'difference':
      return listeners.onDifference?.(report.projection, report.difference);
  }
};

/** The longest that a timer can wait: 25 days. */
const NO_DEADLINE_MS = 2 ** 31 - 1;

/** The outcomes of one worker, by projection. */
const inWorker = async <T>(
  configuration: Configuration,
  names: readonly string[],
  requestOf: (projection: string) => ReplayRequest,
  listeners: Listeners,
): Promise<readonly (readonly [string, PromiseSettledResult<T>])[]> => {
  const onReport = (report: ReplayReport): void => receive(report, listeners);
  const file = join(__dirname, 'replay-worker.js');
  const worker = startThread(file, configuration, { heap: HEAP, onReport });
  listeners.abort?.addEventListener('abort', () => void worker.close());
  const outcomes = await Promise.allSettled(
    names.map((name) => worker.call<T>(requestOf(name), NO_DEADLINE_MS)),
  );
  await worker.close();
  return names.map((name, i) => [name, outcomes[i] as PromiseSettledResult<T>] as const);
};

/** Returns the outcomes in the order of the projectors. */
const inWorkers = async <T>(
  configuration: Configuration,
  projectors: readonly Projector[],
  requestOf: (projection: string) => ReplayRequest,
  listeners: Listeners,
): Promise<PromiseSettledResult<T>[]> => {
  if (projectors.length === 0) return [];
  const workers = spread(projectors).map((names) => inWorker<T>(configuration, names, requestOf, listeners));
  const outcomes = new Map((await Promise.all(workers)).flat());
  return projectors.map(({ name }) => outcomes.get(name) as PromiseSettledResult<T>);
};

/**
 * Rebuilds in parallel worker threads what no other process is rebuilding. One that fails does not stop the others. This
 * thread keeps the leases, since the workers are too busy to.
 */
export const rebuildInWorkers = async (
  configuration: Configuration,
  projectors: readonly Projector[],
  options: Accepted,
  listeners: Omit<Listeners, 'onProgress'>,
): Promise<readonly PromiseSettledResult<Rebuilt>[]> => {
  const { onError, onStep } = listeners;
  const requestOf = (projection: string): ReplayRequest => ({ do: 'rebuild', projection, options });
  const rebuild = async (leases: RebuildLeases): Promise<readonly PromiseSettledResult<Rebuilt>[]> => {
    const due = projectors.filter(({ name }) => !leases.refused.has(name));
    const outcomes = await inWorkers<Rebuilt>(configuration, due, requestOf, {
      ...listeners,
      onStep: (name, step) => {
        leases.note(name, step);
        onStep?.(name, step);
      },
    });
    const refused = [...leases.refused.values()];
    return [...outcomes, ...refused.map((reason) => ({ status: 'rejected', reason }) as const)];
  };
  const { readModels, close } = await openStores(configuration, { use: 'worker', report: onError });
  try {
    const names = projectors.map(({ name }) => name);
    const leases = await takeRebuildLeases(readModels, names, onError);
    try {
      return listeners.abort?.aborted === true ? [] : await rebuild(leases);
    } finally {
      await leases.release();
    }
  } finally {
    await close();
  }
};

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
    (projection) => ({ do: 'verify', projection, tenantId }),
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
