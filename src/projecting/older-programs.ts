import type { Projector } from '../../projections/projector';
import type { ReadModels } from '../read-models/read-models';
import { projectingLease } from './lease';

/**
 * The processes that project an older version of a projection than this program does. Older programs that project the
 * same versions, or nothing, cannot be detected.
 */
export const olderPrograms = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
): Promise<readonly string[]> => {
  const holders = new Set<string>();
  for (const { projection, version } of await readModels.generations()) {
    const known = projectors.find(({ name }) => name === projection);
    if (known === undefined || version >= known.version) continue;
    const holder = await readModels.leaseHolder(projectingLease(projection, version));
    if (holder !== undefined) holders.add(holder);
  }
  return [...holders];
};
