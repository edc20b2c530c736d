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
  const { generations, leases } = await readModels.state();
  const holders = generations.map(({ projection, version }) => {
    const known = projectors.find(({ name }) => name === projection);
    if (known === undefined || version >= known.version) return undefined;
    return leases.get(projectingLease(projection, version))?.holder;
  });
  return [...new Set(holders.filter((holder) => holder !== undefined))];
};
