import type { Projector } from '../../projections/projector';
import { consumer } from '../../src/projecting/consumer';
import {
  rebuildTogether,
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
  const events = consumer(parts.log, parts.streams, batchEvents === undefined ? {} : { batchEvents });
  const [outcome] = await rebuildTogether({ ...parts, consumer: events }, [projector], () => options);
  await events.close();
  if (outcome?.status !== 'fulfilled') throw outcome?.reason;
  return outcome.value;
};
