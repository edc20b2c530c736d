import type { ReadModels } from './read-models';

/** Removes what earlier rebuilds have left. The store keeps what may still be in use. */
export const removeLeftovers = async (readModels: ReadModels): Promise<void> => {
  for (const { id, version, isLive } of await readModels.list())
    if (version === readModels.version && !isLive) await readModels.remove(id);
};
