import type { Collection, Projector } from '../../projections/projector';
import { codeOf } from '../../src/fault';
import {
  generationName,
  liveOf as liveIn,
  type Build,
  type Generation,
  type GenerationId,
  type ReadModels,
  type StoredGeneration,
} from '../../src/read-models/read-models';

export const storedOf = async (
  readModels: ReadModels,
  id: GenerationId,
): Promise<StoredGeneration | undefined> =>
  (await readModels.state()).generations.find((row) => generationName(row) === generationName(id));

/** Creates it if there is none. Several may do so at once. */
const ensure = async (
  readModels: ReadModels,
  id: GenerationId,
  collections: readonly Collection[],
  log: string,
): Promise<void> => {
  if ((await storedOf(readModels, id)) !== undefined) return;
  await readModels.create(id, collections, log).catch(async (error: unknown) => {
    if (codeOf(error) === undefined || (await storedOf(readModels, id)) === undefined) throw error;
  });
};

/** Opens a generation, after creating it if there is none. */
export const createAndOpen = async (
  readModels: ReadModels,
  id: GenerationId,
  collections: readonly Collection[],
  log: string,
): Promise<Generation> => {
  await ensure(readModels, id, collections, log);
  return readModels.open(id, collections);
};

/** The same for a build. */
export const createAndBuild = async (
  readModels: ReadModels,
  id: GenerationId,
  collections: readonly Collection[],
  log: string,
): Promise<Build> => {
  await ensure(readModels, id, collections, log);
  return readModels.build(id, collections);
};

/** The live generation of a projector. */
export const liveOf = async (
  readModels: ReadModels,
  projector: Pick<Projector, 'name' | 'version'>,
): Promise<string | undefined> => liveIn(await readModels.state(), projector)?.generation;

export const leaseHolder = async (readModels: ReadModels, what: string): Promise<string | undefined> =>
  (await readModels.state()).leases.get(what)?.holder;
