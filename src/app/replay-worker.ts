import { workerData } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import type { Projector } from '../../projections/projector';
import { settleAll } from '../async/settle-all';
import { answerInThread, failureOf, type Outcome } from '../async/thread';
import type { Configuration } from '../configuration';
import { consumer } from '../projecting/consumer';
import { openLiveGenerations } from '../projecting/live-generations';
import { rebuildTogether, type ReplayDependencies } from '../projecting/rebuild';
import { verify, type Verified } from '../projecting/verify';
import { programVersion } from '../version';
import { openScratch, openStores } from './adapters';
import { lowerPriority } from './priority';
import type { ReplayReport, ReplayRequest } from './replay-workers';

lowerPriority();

const configuration = workerData as Configuration;
const ending = new AbortController();

const onError = (what: string, error: unknown): void =>
  report({ type: 'error', what, failure: failureOf(error) });

const verifyTogether = async (
  dependencies: ReplayDependencies,
  projectors: readonly Projector[],
  tenantId: string | undefined,
): Promise<PromiseSettledResult<Verified>[]> => {
  const live = await openLiveGenerations(projectors, dependencies.readModels, dependencies.log);
  const scratch = await openScratch(configuration);
  const verifying = live.map((generation) =>
    verify(dependencies, scratch.readModels, generation, {
      tenantId,
      onProgress: (what) => report({ type: 'progress', what }),
      onDifference: (difference) =>
        report({ type: 'difference', projection: generation.projector.name, difference }),
    }),
  );
  try {
    return await Promise.allSettled(verifying);
  } finally {
    await scratch.remove().catch((error: unknown) => onError('A scratch store could not be removed.', error));
  }
};

/** All requests of a thread ask for the same, each about one projection. */
const replay = async (
  [first, ...others]: readonly [ReplayRequest, ...ReplayRequest[]],
  dependencies: ReplayDependencies,
): Promise<PromiseSettledResult<unknown>[]> => {
  const names = [first, ...others].map(({ projection }) => projection);
  const projectors = names.flatMap((wanted) => projections.filter(({ name }) => name === wanted));
  if (first.do === 'verify') return verifyTogether(dependencies, projectors, first.tenantId);
  return rebuildTogether(dependencies, projectors, ({ name }) => ({
    ...first.options,
    onStep: (step) => report({ type: 'step', projection: name, step }),
    onDifference: (difference) => report({ type: 'difference', projection: name, difference }),
  }));
};

const run = async (
  requests: readonly [ReplayRequest, ...ReplayRequest[]],
): Promise<PromiseSettledResult<unknown>[]> => {
  const stores = await openStores(configuration, { use: 'worker', report: onError });
  const events = consumer(stores.log, stores.streams);
  try {
    const { signal: abort } = ending;
    return await replay(requests, { ...stores, program: programVersion(), onError, consumer: events, abort });
  } finally {
    // What is done stays done.
    await settleAll([events.close(), stores.close()]).catch((error: unknown) =>
      onError('The stores could not be closed.', error),
    );
  }
};

const outcomeOf = (settled: PromiseSettledResult<unknown> | undefined): Outcome =>
  settled?.status === 'fulfilled' ? { value: settled.value } : { error: settled?.reason };

const report: (report: ReplayReport) => void = answerInThread({
  answer: (requests) => {
    const running = run(requests as readonly [ReplayRequest, ...ReplayRequest[]]);
    return requests.map((_, at) =>
      running.then(
        (outcomes) => outcomeOf(outcomes[at]),
        (error: unknown) => ({ error }),
      ),
    );
  },
  isRetried: () => false,
  close: () => ending.abort(),
});
