import type { Projector } from '../../projections/projector';
import { consumer } from '../../src/projecting/consumer';
import {
  rebuildTogether,
  takeRebuildLeases,
  type RebuildOptions,
  type Rebuilt,
  type ReplayDependencies,
} from '../../src/projecting/rebuild';

const strictly: RebuildOptions = {
  acceptDifferences: false,
  onStep: () => undefined,
  onDifference: () => undefined,
};

/** Rebuilds one projection. */
export const rebuild = async (
  dependencies: Omit<ReplayDependencies, 'consumer'>,
  projector: Projector,
  options: Partial<RebuildOptions> = {},
  batchEvents?: number,
): Promise<Rebuilt> => {
  const leases = await takeRebuildLeases(dependencies.readModels, [projector.name], dependencies.onError);
  const events = consumer(
    dependencies.log,
    dependencies.streams,
    batchEvents === undefined ? {} : { batchEvents },
  );
  try {
    const refused = leases.refused.get(projector.name);
    if (refused !== undefined) throw refused;
    const [outcome] = await rebuildTogether({ ...dependencies, consumer: events }, [projector], () => ({
      ...strictly,
      ...options,
    }));
    if (outcome?.status !== 'fulfilled') throw outcome?.reason;
    return outcome.value;
  } finally {
    await events.close();
    await leases.release();
  }
};
