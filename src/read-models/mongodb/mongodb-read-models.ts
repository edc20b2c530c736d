import type { Collection } from '../../../projections/projector';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { insertOnce } from '../../mongodb/duplicates';
import {
  COMMON_COLLECTIONS,
  generationName,
  generationRemoved,
  type GenerationId,
  type Peek,
  type ReadModels,
} from '../read-models';
import { controlOf, controlsIn, findControl, insertControl, type OnWrite } from './control-document';
import { generationReader, type Applied, type Incarnation } from './generation-reader';
import { mongodbLeases } from './leases';
import { createIndexes, mongodbBuild, mongodbGeneration, type GenerationOptions } from './mongodb-generation';
import {
  FORMAT,
  isRemovedIn,
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
    await insertOnce(registriesIn(connection), { _id: 'registry', format: FORMAT, log, v: 0 });
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
const appliedTogether = (connection: MongoConnection) => {
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
    if (applied === undefined) throw generationRemoved(id);
    return applied;
  };
};

/** Creates the control document, and with it the incarnation, if it neither exists nor was removed. */
const findOrCreateIncarnation = async (
  connection: MongoConnection,
  registry: RegistryDocument,
  id: GenerationId,
  log: string,
): Promise<string> => {
  const known = await findControl(connection, id);
  if (known !== null) return known.incarnation;
  if (isRemovedIn(await registry.read(), id)) throw generationRemoved(id);
  const incarnation = await insertControl(connection, id, log);
  // If it was removed and dropped just before the insert, it must not come back.
  if (!isRemovedIn(await registry.read(), id)) return findOrCreateIncarnation(connection, registry, id, log);
  await controlsIn(connection).deleteOne({ _id: generationName(id), incarnation });
  throw generationRemoved(id);
};

const peekAt = (connection: MongoConnection, id: GenerationId, incarnation: string): Peek => {
  const at: Incarnation = { connection, id, incarnation, collections: COMMON_COLLECTIONS };
  return {
    id,
    control: async () => {
      const now = await connection.run(findControl(connection, id));
      if (now?.incarnation !== incarnation) throw generationRemoved(id);
      return controlOf(now);
    },
    scan: generationReader(at, async () => ({ position: undefined, n: 0 })).scan,
  };
};

type Opening = Pick<ReadModels, 'open' | 'build' | 'peek' | 'drop'>;

const opening = (
  connection: MongoConnection,
  registry: RegistryDocument,
  options: GenerationOptions,
): Opening => {
  const incarnationIn = async (
    id: GenerationId,
    own: readonly Collection[],
    log: string,
  ): Promise<Incarnation> => ({
    connection,
    id,
    incarnation: await findOrCreateIncarnation(connection, registry, id, log),
    collections: [...own, ...COMMON_COLLECTIONS],
  });
  const open: Opening['open'] = async (id, own, log) => {
    const incarnation = await incarnationIn(id, own, log);
    await createIndexes(incarnation);
    const generation = mongodbGeneration(incarnation, options);
    await generation.control();
    return generation;
  };
  const build: Opening['build'] = async (id, own, log) =>
    mongodbBuild(await incarnationIn(id, own, log), options);
  const peek: Opening['peek'] = async (id) => {
    const found = await findControl(connection, id);
    return found === null ? undefined : peekAt(connection, id, found.incarnation);
  };
  const drop: Opening['drop'] = async (id) => {
    await controlsIn(connection).deleteOne({ _id: generationName(id) });
  };
  return {
    open: (...parts) => connection.run(open(...parts)),
    build: (...parts) => connection.run(build(...parts)),
    peek: (id) => connection.run(peek(id)),
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
  const applied = appliedTogether(connection);
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
