import { parentPort, workerData } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import type { Configuration } from '../configuration';
import { codeOf, messageOf } from '../fault';
import { consumer } from '../projecting/consumer';
import { openLiveGenerations } from '../projecting/live-generations';
import { rebuildTogether, type ReplayDependencies } from '../projecting/rebuild';
import { verify, type Verified } from '../projecting/verify';
import { programVersion } from '../version';
import { openScratch, openStores } from './adapters';
import { lowerPriority } from './priority';
import type { ReplayReport, ReplayWork } from './replay-workers';

lowerPriority();

const port = parentPort;
if (port === null) throw new Error('This belongs in a worker thread.');
const report = (message: ReplayReport): void => port.postMessage(message);

const { configuration, work } = workerData as {
  readonly configuration: Configuration;
  readonly work: ReplayWork;
};
const projectors = projections.filter(({ name }) => work.projections.includes(name));

const failureOf = (error: unknown) => {
  const code = codeOf(error);
  const stack = error instanceof Error ? error.stack : undefined;
  return { message: messageOf(error), ...(code === undefined ? { stack } : { code }) };
};
const onError = (what: string, error: unknown): void => report({ type: 'error', what, ...failureOf(error) });

const verifyTogether = async (
  dependencies: ReplayDependencies,
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

const outcomesOf = (dependencies: ReplayDependencies): Promise<PromiseSettledResult<unknown>[]> => {
  if (work.do === 'verify') return verifyTogether(dependencies, work.tenantId);
  return rebuildTogether(dependencies, projectors, ({ name }) => ({
    ...work.options,
    onStep: (step) => report({ type: 'step', projection: name, step }),
    onDifference: (difference) => report({ type: 'difference', projection: name, difference }),
  }));
};

const run = async (): Promise<void> => {
  const stores = await openStores(configuration, { use: 'worker', report: onError });
  const events = consumer(stores.log, stores.streams);
  try {
    const outcomes = await outcomesOf({ ...stores, program: programVersion(), onError, consumer: events });
    outcomes.forEach((outcome, i) => {
      const projection = projectors[i]?.name ?? '';
      if (outcome.status === 'fulfilled') report({ type: 'done', projection, outcome: outcome.value });
      else report({ type: 'failed', projection, ...failureOf(outcome.reason) });
    });
  } finally {
    await events.close();
    await stores.close();
  }
};

run().catch((error: unknown) => {
  for (const { name } of projectors) report({ type: 'failed', projection: name, ...failureOf(error) });
});
