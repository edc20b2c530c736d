import type { Collection } from '../../../projections/projector';
import { codeOf, fault, messageOf } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { insertOnce } from '../../mongodb/duplicates';
import { damaged, lost } from '../damage';
import {
  COMMON_COLLECTIONS,
  generationName,
  generationRemoved,
  type GenerationId,
  type Peek,
  type ReadModels,
} from '../read-models';
import {
  controlOf,
  controlsIn,
  findControl,
  insertControl,
  type OnWrite,
  type StoredControl,
} from './control-document';
import { generationReader, type Applied, type Incarnation } from './generation-reader';
import { mongodbLeases } from './leases';
import {
  checkCollections,
  createCollections,
  createIndexes,
  mongodbBuild,
  mongodbGeneration,
  type GenerationOptions,
} from './mongodb-generation';
import {
  damageIn,
  damageWithoutRegistry,
  FORMAT,
  isPointedAtIn,
  isRemovedIn,
  markDamaged,
  registriesIn,
  registryDocument,
  registryOf,
  type RegistryDocument,
} from './registry';
import { sweeping } from './sweep';

/**
 * A quarter of the limit of a document: BSON is larger than JSON, and the control document contains the whole commit.
 */
const MAX_COMMIT_BYTES = 4_194_304;

/** About the duration of a commit. */
const FINISH_AFTER_MS = 100;

export interface MongoReadModelsOptions {
  /** The identity of the log. A database contains the read models of one log. */
  readonly log?: string;
  readonly maxCommitBytes?: number;
  readonly onWrite?: OnWrite;
  readonly finishAfterMs?: number;
}

/** Short enough to notice a switch within a second. */
const LOOK_MS = 500;

const IF_OF_ANOTHER_LOG =
  'Check EVENTSTORE_URL, STREAM_PREFIX, DATA_DIR and MONGODB_URL: they name the log and its read models together. If this is the right log, name another database in MONGODB_URL, or drop this one: the read models are then rebuilt from the log.';

/** Creates the registry if there is none. It says which log everything here is built from. */
const claim = async (connection: MongoConnection, log: string): Promise<void> => {
  const { place } = connection;
  const found = await registriesIn(connection).findOne({ _id: 'registry' });
  if (found === null) {
    const damage = await damageWithoutRegistry(connection);
    await insertOnce(registriesIn(connection), {
      _id: 'registry',
      format: FORMAT,
      log,
      v: 0,
      damaged: damage,
    });
    return claim(connection, log);
  }
  if (found.format > FORMAT)
    throw fault(
      'configuration_invalid',
      `The read models in ${place} were created by a newer version of tenant-ledger. Start that version, or name another database in MONGODB_URL.`,
    );
  if (log !== '' && found.log !== log)
    throw fault(
      'read_models_of_another_log',
      `The database ${place} holds read models of another event log. ${IF_OF_ANOTHER_LOG}`,
    );
};

const APPLIED = { applied: 1, applied_n: 1, incarnation: 1 } as const;

/** Combines concurrent calls for several generations into one query. */
const appliedTogether = (connection: MongoConnection, registry: RegistryDocument) => {
  let next: Promise<ReadonlyMap<string, Applied>> | undefined;
  let names: string[] = [];
  const ask = async (): Promise<ReadonlyMap<string, Applied>> => {
    const requested = names;
    [next, names] = [undefined, []];
    const found = await controlsIn(connection)
      .find({ _id: { $in: requested } }, { projection: APPLIED, batchSize: requested.length + 1 })
      .toArray();
    return new Map(
      found.map(({ _id, incarnation, applied, applied_n }) => [
        `${_id} ${incarnation}`,
        { position: applied, n: applied_n },
      ]),
    );
  };
  return async ({ id, incarnation }: Incarnation): Promise<Applied> => {
    names.push(generationName(id));
    const applied = (await (next ??= Promise.resolve().then(ask))).get(
      `${generationName(id)} ${incarnation}`,
    );
    if (applied !== undefined) return applied;
    const isPointedAt = isPointedAtIn(await registry.read(), id);
    throw isPointedAt ? lost('its control document is missing.') : generationRemoved(id);
  };
};

/** Creates the control document, and with it the incarnation, if it neither exists nor was removed. */
const findOrCreateIncarnation = async (
  connection: MongoConnection,
  registry: RegistryDocument,
  id: GenerationId,
  log: string,
): Promise<StoredControl> => {
  const known = await findControl(connection, id);
  if (known !== null) return known;
  const now = await registry.read();
  if (isRemovedIn(now, id)) throw generationRemoved(id);
  if (isPointedAtIn(now, id)) throw lost('its control document is missing.');
  const incarnation = await insertControl(connection, id, log);
  // If it was removed and dropped just before the insert, it must not come back.
  if (!isRemovedIn(await registry.read(), id)) return findOrCreateIncarnation(connection, registry, id, log);
  await controlsIn(connection).deleteOne({ _id: generationName(id), incarnation });
  throw generationRemoved(id);
};

const peekAt = (connection: MongoConnection, id: GenerationId, incarnation: string): Peek => {
  const guarded = <T>(work: Promise<T>): Promise<T> => orDamaged(id, work);
  const common = { collections: COMMON_COLLECTIONS, wholeAt: new Map(), guarded };
  const at: Incarnation = { connection, id, incarnation, ...common };
  return {
    id,
    control: async () => {
      const now = await guarded(connection.run(findControl(connection, id)));
      if (now?.incarnation !== incarnation) throw generationRemoved(id);
      return controlOf(now);
    },
    scan: generationReader(at, async () => ({ position: undefined, n: 0 })).scan,
  };
};

/** Turns `contents_lost` into `damaged`, after marking the generation. */
const orDamaged = async <T>(
  id: GenerationId,
  work: Promise<T>,
  mark: (why: string) => Promise<void> = async () => undefined,
): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) !== 'contents_lost') throw error;
    await mark(messageOf(error)).catch(() => undefined);
    throw damaged(id, messageOf(error));
  }
};

type Opening = Pick<ReadModels, 'open' | 'build' | 'peek' | 'drop'>;

const opening = (
  connection: MongoConnection,
  registry: RegistryDocument,
  options: GenerationOptions,
): Opening => {
  const guardedFor =
    (id: GenerationId) =>
    <T>(work: Promise<T>): Promise<T> =>
      orDamaged(id, work, (why) => markDamaged(registry, id, why));
  const incarnationIn = async (
    id: GenerationId,
    own: readonly Collection[],
    log: string,
  ): Promise<{ readonly at: Incarnation; readonly isNew: boolean }> => {
    const why = damageIn(await registry.read(), id);
    if (why !== undefined) throw damaged(id, why);
    const { n, incarnation } = await findOrCreateIncarnation(connection, registry, id, log);
    const collections = [...own, ...COMMON_COLLECTIONS];
    const at = { connection, id, incarnation, collections, wholeAt: new Map(), guarded: guardedFor(id) };
    return { at, isNew: n === 0 };
  };
  const open: Opening['open'] = async (id, own, log) => {
    const { at, isNew } = await incarnationIn(id, own, log);
    if (!isNew) await checkCollections(at);
    // Before anything is inserted: the indexes of an empty collection are ready at once.
    await createIndexes(at);
    if (isNew) await createCollections(at);
    const generation = mongodbGeneration(at, options);
    await generation.control();
    return generation;
  };
  const build: Opening['build'] = async (id, own, log) => {
    const { at, isNew } = await incarnationIn(id, own, log);
    await (isNew ? createCollections(at) : checkCollections(at));
    return mongodbBuild(at, options);
  };
  const peek: Opening['peek'] = async (id) => {
    const found = await findControl(connection, id);
    return found === null ? undefined : peekAt(connection, id, found.incarnation);
  };
  const drop: Opening['drop'] = async (id) => {
    await controlsIn(connection).deleteOne({ _id: generationName(id) });
  };
  return {
    open: (id, ...parts) => guardedFor(id)(connection.run(open(id, ...parts))),
    build: (id, ...parts) => guardedFor(id)(connection.run(build(id, ...parts))),
    peek: (id) => orDamaged(id, connection.run(peek(id))),
    drop: (id) => connection.run(drop(id)),
  };
};

/** Read models in one database, which any number of processes may share. Closing them does not close the connection. */
export const mongodbReadModels = async (
  connection: MongoConnection,
  options: MongoReadModelsOptions = {},
): Promise<ReadModels> => {
  const { log = '', maxCommitBytes = MAX_COMMIT_BYTES, finishAfterMs = FINISH_AFTER_MS } = options;
  await connection.run(claim(connection, log));
  const registry = registryDocument(connection);
  const { isHeld, close: closeLeases, ...leases } = mongodbLeases(connection, registry);
  const stopSweeping = sweeping(connection);
  const onWrite = options.onWrite ?? (() => undefined);
  const applied = appliedTogether(connection, registry);
  return {
    ...registryOf(connection, registry, isHeld),
    ...leases,
    ...opening(connection, registry, { maxCommitBytes, onWrite, finishAfterMs, applied }),
    ifOfAnotherLog: IF_OF_ANOTHER_LOG,
    lookMs: LOOK_MS,
    close: async () => {
      stopSweeping();
      closeLeases();
    },
  };
};
