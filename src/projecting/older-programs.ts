import type { Projector } from '../../projections/projector';
import type { ReadModels } from '../read-models/read-models';
import { projectingLease } from './lease';

/**
 * The processes that project a version of a projection that is older than this program's: older programs, as far as they
 * can be seen. One whose projections are all the same, or that does not project, is not among them.
 */
export const olderPrograms = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
): Promise<readonly string[]> => {
  const found = new Set<string>();
  for (const { projection, version } of await readModels.generations()) {
    const known = projectors.find(({ name }) => name === projection);
    if (known === undefined || version >= known.version) continue;
    const holder = await readModels.leaseHolder(projectingLease(projection, version));
    if (holder !== undefined) found.add(holder);
  }
  return [...found];
};
