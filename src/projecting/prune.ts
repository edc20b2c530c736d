import type { Projector } from '../../projections/projector';
import { pause } from '../clock';
import {
  generationName,
  type GenerationId,
  type ReadModels,
  type RemovalRefused,
} from '../read-models/read-models';
import { projectingLease, rebuildLease } from './lease';
import { STILL_PROJECTED_MS } from './active-generations';

/**
 * What would prevent removing a generation. Undefined: it is not ours to remove, since its projection is unknown or its
 * version newer than this program's. Older versions go unless an older program projects them.
 */
const removalGuard = (id: GenerationId, projectors: readonly Projector[]): RemovalRefused | undefined => {
  const projector = projectors.find(({ name }) => name === id.projection);
  if (projector === undefined || id.version > projector.version) return undefined;
  return id.version < projector.version
    ? { held: projectingLease(id.projection, id.version), live: false }
    : { held: rebuildLease(id.projection), live: true };
};

/** The generations not in use: previous ones, leftovers of killed rebuilds, older versions. */
export const unusedGenerations = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
): Promise<readonly GenerationId[]> => {
  const isUnused = async (id: GenerationId): Promise<boolean> => {
    const unless = removalGuard(id, projectors);
    if (unless === undefined || (await readModels.leaseHolder(unless.held)) !== undefined) return false;
    if (!unless.live) return true;
    const pointer = await readModels.pointer(id.projection, id.version);
    return pointer !== undefined && pointer.live !== id.generation;
  };
  const unused: GenerationId[] = [];
  for (const id of await readModels.generations()) if (await isUnused(id)) unused.push(id);
  return unused;
};

const LOOK_MS = 100;

/** Other processes may not have noticed yet that it is no longer live, and their writes still wait for it. */
const untilUnread = async (
  readModels: ReadModels,
  { projection, version, generation }: GenerationId,
  withinMs: number,
): Promise<void> => {
  const isRead = async (): Promise<boolean> =>
    (await readModels.liveLately(projection, version, withinMs)).includes(generation);
  while (await isRead()) await pause(LOOK_MS);
};

/**
 * Removes the generations that are still unused: things may have changed while the operator was deciding. The store marks
 * each atomically, after which no switch or rollback to it is possible.
 */
export const prune = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
  found: readonly GenerationId[],
  readForMs = STILL_PROJECTED_MS,
): Promise<readonly string[]> => {
  const removed: string[] = [];
  for (const id of found) {
    const unless = removalGuard(id, projectors);
    if (unless === undefined || !(await readModels.markRemoved(id, unless))) continue;
    await untilUnread(readModels, id, readForMs);
    await readModels.drop(id);
    removed.push(generationName(id));
  }
  return removed;
};
