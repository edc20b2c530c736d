import type { Projector } from '../../projections/projector';
import { generationName, type GenerationId, type ReadModels } from '../read-models/read-models';
import { projectingLease } from './lease';

/** What prune has begun to remove is never filled again, should it be killed in between. */
export const isBeingRemoved = async (readModels: ReadModels, id: GenerationId): Promise<boolean> =>
  (await readModels.asked(`remove ${generationName(id)}`)).times > 0;

/**
 * The generations that nothing needs: those before the live ones, what killed rebuilds have left, and versions older
 * than this program's that no older program projects. A newer version belongs to a newer program and is left alone.
 */
export const unusedGenerations = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
): Promise<readonly GenerationId[]> => {
  const isUnused = async (id: GenerationId): Promise<boolean> => {
    const projector = projectors.find(({ name }) => name === id.projection);
    if (projector === undefined || id.version > projector.version) return false;
    if (id.version < projector.version)
      return (await readModels.leaseHolder(projectingLease(id.projection, id.version))) === undefined;
    const pointer = await readModels.pointer(id.projection, id.version);
    if (pointer === undefined || pointer.live === id.generation) return false;
    return (await readModels.leaseHolder(`rebuild ${id.projection}`)) === undefined;
  };
  const unused: GenerationId[] = [];
  for (const id of await readModels.generations()) if (await isUnused(id)) unused.push(id);
  return unused;
};

/** Nothing points at it any more; false if somebody has switched meanwhile. */
const unpoint = async (readModels: ReadModels, { projection, version, generation }: GenerationId) => {
  const pointer = await readModels.pointer(projection, version);
  if (pointer?.live === generation) return false;
  if (pointer?.previous !== generation) return true;
  return readModels.point(projection, version, { live: pointer.live }, pointer);
};

/** Removes what was found unused and still is: much may happen while an operator makes up their mind. */
export const prune = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
  found: readonly GenerationId[],
): Promise<readonly string[]> => {
  const names = new Set(found.map(generationName));
  const removed: string[] = [];
  for (const id of await unusedGenerations(readModels, projectors)) {
    if (!names.has(generationName(id))) continue;
    await readModels.ask(`remove ${generationName(id)}`);
    if (!(await unpoint(readModels, id))) continue;
    await readModels.drop(id);
    removed.push(generationName(id));
  }
  return removed;
};
