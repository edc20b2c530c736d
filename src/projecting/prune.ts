import type { Projector } from '../../projections/projector';
import { pause } from '../async/clock';
import {
  generationName,
  type GenerationId,
  type ReadModels,
  type RemovalGuard,
  type StoredGeneration,
} from '../read-models/read-models';
import { projectingLease, rebuildLease } from './lease';
import { STILL_PROJECTED_MS } from './active-generations';

/**
 * What would prevent removing a generation. Undefined: it is not ours to remove, since its projection is unknown or its
 * version newer than this program's. Older versions go unless an older program projects them.
 */
const removalGuard = (id: GenerationId, projectors: readonly Projector[]): RemovalGuard | undefined => {
  const projector = projectors.find(({ name }) => name === id.projection);
  if (projector === undefined || id.version > projector.version) return undefined;
  return id.version < projector.version
    ? { held: [projectingLease(id.projection, id.version)] }
    : { held: [rebuildLease(id.projection)], live: true };
};

/** The generations not in use: those that were live, what rebuilds left behind, older versions. */
export const unusedGenerations = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
): Promise<readonly GenerationId[]> => {
  const { generations, leases } = await readModels.state();
  return generations.filter((id) => {
    const unless = removalGuard(id, projectors);
    if (unless === undefined || unless.held?.some((what) => leases.has(what)) === true) return false;
    return unless.live !== true || !id.isLive;
  });
};

/**
 * Removes the generations that are still unused: things may have changed while the operator was deciding. Waits for those
 * that were live until just now: other processes may not have noticed the switch yet, and their writes still wait for them.
 */
export const prune = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
  found: readonly GenerationId[],
  leftWithinMs = STILL_PROJECTED_MS,
): Promise<readonly string[]> => {
  const isStillRead = async (id: GenerationId): Promise<boolean> => {
    const { generations } = await readModels.state();
    const stored = generations.find((row) => generationName(row) === generationName(id));
    return (stored?.leftMs ?? Infinity) < leftWithinMs;
  };
  const removed: string[] = [];
  for (const id of found) {
    const unless = removalGuard(id, projectors);
    if (unless === undefined) continue;
    while (await isStillRead(id)) await pause(readModels.pollMs);
    if (await readModels.remove(id, { ...unless, leftWithinMs })) removed.push(generationName(id));
  }
  return removed;
};

/** Queries that started before a switch may take a while. */
const UNREAD_MS = 20_000;

/** Removes what was live before the last switch, once nobody can read it any more. For the process that projects. */
export const removeFormerlyLive = async (
  readModels: ReadModels,
  projectors: readonly Projector[],
  generations: readonly StoredGeneration[],
): Promise<void> => {
  for (const id of generations) {
    const isOurs = projectors.some(({ name, version }) => name === id.projection && version === id.version);
    if (!isOurs || id.isLive || (id.leftMs ?? 0) < UNREAD_MS) continue;
    await readModels.remove(id, { live: true, leftWithinMs: UNREAD_MS });
  }
};
