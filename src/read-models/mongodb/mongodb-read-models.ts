import type { Collection } from '../../../projections/projector';
import { codeOf, fault, messageOf } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { damaged, lost } from '../damage';
import {
  COMMON_COLLECTIONS,
  generationName,
  generationRemoved,
  type Build,
  type Generation,
  type GenerationId,
  type ReadModels,
  type RemovalGuard,
} from '../read-models';
import { controlFinder, controlsIn, insertControl, type OnWrite } from './control-document';
import { type OpenGeneration } from './generation-reader';
import { generationOf, type StoredControl } from './layout';
import {
  checkCollections,
  createCollections,
  createIndexes,
  mongodbBuild,
  mongodbGeneration,
  type GenerationOptions,
} from './mongodb-generation';
import {
  beginCreation,
  beginRemoval,
  endCreation,
  endRemoval,
  markDamaged,
  registriesIn,
  registryDocument,
  REGISTRY_ID,
  registryOf,
  rowOf,
  type RegistryDocument,
} from './registry';

/**
 * A quarter of the limit of a document: BSON is larger than JSON, and the control document contains the whole commit.
 */
const MAX_COMMIT_BYTES = 4_194_304;

export interface MongoReadModelsOptions {
  /** The identity of the log. A database contains the read models of one log. */
  readonly log: string;
  readonly maxCommitBytes?: number;
  readonly onWrite?: OnWrite;
  /** By default about the duration of a commit. */
  readonly finishAfterMs?: number;
}

const OTHER_LOG_HINT =
  'Check EVENTSTORE_URL, STREAM_PREFIX and MONGODB_URL: they name the log and its read models together. If this is the right log, name another database in MONGODB_URL, or drop this one: the read models are then rebuilt from the log.';

/** Throws if the registry is for another log. */
const mustBeOurs = async (connection: MongoConnection, log: string): Promise<void> => {
  const { place } = connection;
  const found = await registriesIn(connection).findOne({ _id: REGISTRY_ID });
  if (found !== null && found.log !== log)
    throw fault(
      'read_models_of_another_log',
      `The database ${place} holds read models of another event log. ${OTHER_LOG_HINT}`,
    );
};

/** Turns `contents_lost` into `damaged`, after marking the generation, unless it was removed. */
const orDamaged = async <T>(
  id: GenerationId,
  work: Promise<T>,
  mark: (why: string) => Promise<void>,
): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) !== 'contents_lost') throw error;
    await mark(messageOf(error)).catch((failure: unknown) => {
      if (codeOf(failure) === 'generation_removed') throw failure;
    });
    throw damaged(id, messageOf(error));
  }
};

/**
 * Drops the collections of generations that do not exist: of a removed one, or what a late projector wrote to one. Lists
 * them first, since a generation is in the registry before it has collections.
 */
const dropOrphans = async (
  { db }: MongoConnection,
  registry: RegistryDocument,
  removed: GenerationId,
): Promise<void> => {
  const listed = await db.listCollections({}, { nameOnly: true }).toArray();
  const now = await registry.read();
  const isOrphan = (id: GenerationId): boolean =>
    generationName(id) === generationName(removed) || rowOf(now, id) === undefined;
  for (const { name } of listed) {
    const id = generationOf(name);
    if (id !== undefined && isOrphan(id)) await db.dropCollection(name);
  }
};

/** Removes it from the registry last, so that it is removed again if this is interrupted. */
const removeGeneration = async (
  connection: MongoConnection,
  registry: RegistryDocument,
  id: GenerationId,
  unless: RemovalGuard,
): Promise<boolean> => {
  if (!(await beginRemoval(registry, id, unless))) return false;
  await controlsIn(connection).deleteOne({ _id: generationName(id) });
  await dropOrphans(connection, registry, id);
  await endRemoval(registry, id);
  return true;
};

/** A generation that is in the registry, and not damaged as far as known. */
const opening = (connection: MongoConnection, registry: RegistryDocument) => {
  const findControl = controlFinder(connection);
  const guardedFor =
    (id: GenerationId) =>
    <T>(work: Promise<T>): Promise<T> =>
      orDamaged(id, work, async (why) => {
        if (rowOf(await registry.read(), id) === undefined) throw generationRemoved(id);
        await markDamaged(registry, id, why);
      });
  const withoutControl = async (id: GenerationId): Promise<Error> => {
    const row = rowOf(await registry.read(), id);
    if (row === undefined) return generationRemoved(id);
    return row.damage === undefined ? lost('its control document is missing.') : damaged(id, row.damage);
  };
  const control = async (id: GenerationId): Promise<StoredControl> => {
    const found = await findControl(id);
    if (found === undefined) throw await withoutControl(id);
    return found;
  };
  const openedAs = (id: GenerationId, own: readonly Collection[]): OpenGeneration => ({
    connection,
    id,
    collections: [...own, ...COMMON_COLLECTIONS],
    wholeAt: new Map(),
    guarded: guardedFor(id),
    control: () => control(id),
    withoutControl: () => withoutControl(id),
  });
  const existing = async (id: GenerationId, own: readonly Collection[]): Promise<OpenGeneration> => {
    const row = rowOf(await registry.read(), id);
    if (row === undefined || row.creating_since !== undefined) throw generationRemoved(id);
    if (row.damage !== undefined) throw damaged(id, row.damage);
    const opened = openedAs(id, own);
    await opened.control();
    await checkCollections(opened);
    return opened;
  };
  return { guardedFor, openedAs, existing };
};

const generationsIn = (
  connection: MongoConnection,
  registry: RegistryDocument,
  options: GenerationOptions,
): Pick<ReadModels, 'create' | 'open' | 'build' | 'remove'> => {
  const { guardedFor, openedAs, existing } = opening(connection, registry);
  const create = async (id: GenerationId, own: readonly Collection[], log: string): Promise<void> => {
    await beginCreation(registry, id);
    await insertControl(connection, id, log);
    await createCollections(openedAs(id, own));
    await endCreation(registry, id);
  };
  const open = async (id: GenerationId, own: readonly Collection[]): Promise<Generation> => {
    const opened = await existing(id, own);
    // Of an empty collection they are ready at once.
    await createIndexes(opened);
    const generation = mongodbGeneration(opened, options);
    await generation.control();
    return generation;
  };
  const build = async (id: GenerationId, own: readonly Collection[]): Promise<Build> =>
    mongodbBuild(await existing(id, own), options);
  return {
    create: (id, own, builtFrom) => connection.run(create(id, own, builtFrom)),
    open: (id, own) => guardedFor(id)(connection.run(open(id, own))),
    build: (id, own) => guardedFor(id)(connection.run(build(id, own))),
    remove: (id, unless) => connection.run(removeGeneration(connection, registry, id, unless)),
  };
};

/** Read models in one database, which any number of processes may share. Closing them does not close the connection. */
export const mongodbReadModels = async (
  connection: MongoConnection,
  options: MongoReadModelsOptions,
): Promise<ReadModels> => {
  const { log, maxCommitBytes = MAX_COMMIT_BYTES, finishAfterMs = 100 } = options;
  await connection.run(mustBeOurs(connection, log));
  const registry = registryDocument(connection, log);
  const onWrite = options.onWrite ?? (() => undefined);
  return {
    ...registryOf(registry),
    ...generationsIn(connection, registry, { maxCommitBytes, onWrite, finishAfterMs }),
    otherLogHint: OTHER_LOG_HINT,
    // Short enough to notice a switch within a second. Two threads of every process look.
    pollMs: 600,
    close: async () => undefined,
  };
};
