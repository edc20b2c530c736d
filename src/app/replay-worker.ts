import { parentPort, workerData } from 'node:worker_threads';
import { projections } from '../../projections/projections';
import type { Configuration } from '../configuration';
import { codeOf, messageOf } from '../fault';
import { consumer } from '../projecting/consumer';
import { openLiveGenerations } from '../projecting/live-generations';
import { rebuildTogether, type ReplayParts } from '../projecting/rebuild';
import { verify, type Verified } from '../projecting/verify';
import { programVersion } from '../version';
import { openScratch, openStores } from './adapters';
import type { ReplayTold, ReplayWork } from './replay-workers';

const port = parentPort;
if (port === null) throw new Error('This belongs in a worker thread.');
const tell = (told: ReplayTold): void => port.postMessage(told);

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
const onTrouble = (what: string, error: unknown): void =>
  tell({ tell: 'trouble', what, ...failureOf(error) });

const verifyTogether = async (
  parts: ReplayParts,
  tenantId: string | undefined,
): Promise<PromiseSettledResult<Verified>[]> => {
  const live = await openLiveGenerations(projectors, parts.readModels, parts.log);
  const replay = { ...parts, consumer: consumer(parts.log, parts.streams) };
  const place = await openScratch(configuration);
  const verifying = live.map((one) =>
    verify(replay, place.readModels, one, {
      ...(tenantId === undefined ? {} : { tenantId }),
      onProgress: (what) => tell({ tell: 'progress', what }),
      onDifference: (difference) => tell({ tell: 'difference', projection: one.projector.name, difference }),
    }),
  );
  try {
    return await Promise.allSettled(verifying);
  } finally {
    await place.remove().catch((error: unknown) => onTrouble('A scratch store could not be removed.', error));
  }
};

const outcomesOf = (parts: ReplayParts): Promise<PromiseSettledResult<unknown>[]> => {
  if (work.do === 'verify') return verifyTogether(parts, work.tenantId);
  return rebuildTogether(parts, projectors, ({ name }) => ({
    ...work.options,
    tell: (step) => tell({ tell: 'step', projection: name, step }),
  }));
};

const run = async (): Promise<void> => {
  const stores = await openStores(configuration, 'worker', onTrouble);
  try {
    const outcomes = await outcomesOf({ ...stores, program: programVersion(), onTrouble });
    outcomes.forEach((outcome, i) => {
      const projection = projectors[i]?.name ?? '';
      if (outcome.status === 'fulfilled') tell({ tell: 'done', projection, outcome: outcome.value });
      else tell({ tell: 'failed', projection, ...failureOf(outcome.reason) });
    });
  } finally {
    await stores.close();
  }
};

run().catch((error: unknown) => {
  for (const { name } of projectors) tell({ tell: 'failed', projection: name, ...failureOf(error) });
});
