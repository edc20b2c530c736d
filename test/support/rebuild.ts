import type { Projector } from '../../projections/projector';
import { consumer } from '../../src/projecting/consumer';
import {
  rebuildTogether,
  takeRebuildLeases,
  type RebuildOptions,
  type Rebuilt,
  type ReplayParts,
} from '../../src/projecting/rebuild';

/** Rebuilds one projection. */
export const rebuild = async (
  parts: Omit<ReplayParts, 'consumer'>,
  projector: Projector,
  options: RebuildOptions,
  batchEvents?: number,
): Promise<Rebuilt> => {
  const leases = await takeRebuildLeases(parts.readModels, [projector.name], parts.onError);
  const events = consumer(parts.log, parts.streams, batchEvents === undefined ? {} : { batchEvents });
  try {
    const refused = leases.refused.get(projector.name);
    if (refused !== undefined) throw refused;
    const [outcome] = await rebuildTogether({ ...parts, consumer: events }, [projector], () => options);
    if (outcome?.status !== 'fulfilled') throw outcome?.reason;
    return outcome.value;
  } finally {
    await events.close();
    await leases.release();
  }
};
