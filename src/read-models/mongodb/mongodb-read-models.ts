import { randomBytes } from 'node:crypto';
import { PROGRESS, type Collection } from '../../../projections/projector';
import { settleAll } from '../../async/concurrency';
import type { Position } from '../../event-log/event-log';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import type { ReadModels, ReadModelSet, SetInfo } from '../read-models';
import { liveFinder, removeSet, switching } from './chain';
import { advancing } from './commits';
import {
  ABSENT,
  collectionName,
  controlOf,
  controlsIn,
  GATES,
  gatesIn,
  rootsIn,
  type Stored,
} from './layout';
import { leaseOn } from './lease';
import { indexesFor, PARKED_INDEX } from './queries';
import { documentsIn, findControl, setReader, type OpenSet } from './set-reader';

export interface MongoReadModelsOptions {
  readonly version: string;
  /** Those of all projectors. */
  readonly collections: readonly Collection[];
  readonly graceMs?: number;
  readonly leaseMs?: number;
}

/** A single server has no transactions. A router of a sharded cluster has no name of a set. */
const mustBeReplicaSet = async ({ db, place }: MongoConnection): Promise<void> => {
  const { setName, msg } = await db.command({ hello: 1 });
  if (setName !== undefined || msg === 'isdbgrid') return;
  throw fault(
    'read_models_unavailable',
    `MongoDB at ${place} is not a replica set, which transactions need. One member is enough: start it with --replSet rs0, and run rs.initiate() once.`,
    { isFinal: true },
  );
};

interface MongoSet extends ReadModelSet {
  /** From now on, others may write to it, too. */
  share(): void;
}

/** Empty collections, the indexes that number their lines, and the gates, beside the progress. */
const createCollections = async (
  connection: MongoConnection,
  id: string,
  collections: ReadonlyMap<string, Collection>,
): Promise<void> => {
  const create = async (collection: Collection): Promise<void> => {
    const created = await connection.db.createCollection(collectionName(id, collection.name));
    const indexes = collection === PROGRESS ? [PARKED_INDEX] : indexesFor(collection, true);
    if (indexes.length > 0) await created.createIndexes(indexes);
  };
  await settleAll(Array.from(collections.values(), create));
  await gatesIn(connection, id).insertMany(GATES.map((_id) => ({ _id, n: 0 })));
};

/**
 * Indexing a large collection takes longer than a command may. Only a command that succeeds proves that an index can be
 * used: a list of indexes has those that are still being built.
 */
const createIndexesOf = async (set: OpenSet, collection: Collection): Promise<void> => {
  const wanted = indexesFor(collection, false);
  while (wanted.length > 0)
    try {
      await documentsIn(set, collection.name).createIndexes(wanted);
      return;
    } catch (error) {
      if ((error as Error).name !== 'MongoNetworkTimeoutError') throw error;
    }
};

const openSet = (set: OpenSet): MongoSet => {
  const { connection, id } = set;
  const mustBeWhole = (): void => {
    if (!set.isHalfWritten) return;
    throw fault('read_models_unavailable', `The build of the set ${id} was interrupted.`);
  };
  const finish = async (): Promise<void> => {
    if (set.isFinished) return;
    mustBeWhole();
    await settleAll([...set.collections.values()].map((collection) => createIndexesOf(set, collection)));
    set.isFinished = true;
  };
  const renew = async (): Promise<boolean> => {
    const update = { $currentDate: { renewed_at: true } } as const;
    const { matchedCount } = await controlsIn(connection).updateOne({ _id: id, removed: ABSENT }, update);
    return matchedCount === 1 && !set.isHalfWritten;
  };
  return {
    id,
    ...setReader(set),
    control: async () => {
      const found = await findControl(connection, id);
      if (found !== null && found.removed !== true) return controlOf(found);
      throw fault('read_model_set_removed', `There is no set ${id} in ${connection.place} any more.`);
    },
    advance: advancing(set),
    renew: () => connection.run(renew()),
    finish: () => connection.run(finish()),
    share: () => {
      mustBeWhole();
      set.isBuild = false;
    },
  };
};

/** The sets that this process has opened. */
const openSets = (connection: MongoConnection, collections: ReadonlyMap<string, Collection>) => {
  const opened = new Map<string, MongoSet>();
  const reading = connection.db.client.startSession();
  const open = (id: string, isBuild: boolean): MongoSet => {
    const state = {
      usedGates: new Set<Stored['_id']>(),
      isBuild,
      isHalfWritten: false,
      isFinished: !isBuild,
    };
    const set = openSet({ connection, id, collections, reading, ...state });
    opened.set(id, set);
    return set;
  };
  const create = async (version: string, log: string): Promise<ReadModelSet> => {
    const id = randomBytes(8).toString('hex');
    const update = { $set: { version, log, marks: 0 }, $currentDate: { renewed_at: true as const } };
    await controlsIn(connection).updateOne({ _id: id }, update, { upsert: true });
    await createCollections(connection, id, collections);
    return open(id, true);
  };
  const get = (id: string): MongoSet => opened.get(id) ?? open(id, false);
  return { create, get, forget: (id: string) => opened.delete(id), close: () => reading.endSession() };
};

const list = async (connection: MongoConnection): Promise<readonly SetInfo[]> => {
  const roots = await rootsIn(connection).find().toArray();
  const controls = await controlsIn(connection).find().toArray();
  const successors = new Map(controls.map(({ _id, next }) => [_id, next]));
  const ends = new Set(roots.map(({ live }) => live));
  for (const id of ends) {
    const next = successors.get(id);
    if (next !== undefined && ends.delete(id)) ends.add(next);
  }
  return controls.map((control) => ({
    id: control._id,
    version: control.version,
    control: controlOf(control),
    isLive: ends.has(control._id),
  }));
};

/** Read models in one database, which any number of processes may share. Closing them does not close the connection. */
export const mongodbReadModels = async (
  connection: MongoConnection,
  { version, collections, graceMs = TIMES.graceMs, leaseMs }: MongoReadModelsOptions,
): Promise<ReadModels> => {
  const { run } = connection;
  await run(mustBeReplicaSet(connection));
  const declared = new Map([...collections, PROGRESS].map((one) => [one.name, one]));
  const sets = openSets(connection, declared);
  const findLive = liveFinder(connection, version);
  const succeed = switching(connection, version);
  return {
    version,
    live: async () => {
      const found = await run(findLive());
      return found === undefined ? undefined : { set: sets.get(found._id), control: controlOf(found) };
    },
    create: (log) => run(sets.create(version, log)),
    succeed: async (built, former, { follow, evenIfBehind = false } = {}) => {
      const { finish, share } = sets.get(built.id);
      await finish();
      const followLast = async (furthest: Position | undefined): Promise<void> => {
        await follow?.(furthest);
        share();
      };
      return run(succeed(built.id, former?.id, followLast, evenIfBehind));
    },
    list: () => run(list(connection)),
    remove: async (id) => {
      const isRemoved = await run(removeSet(connection, id, graceMs));
      if (isRemoved) sets.forget(id);
      return isRemoved;
    },
    abandon: async (other) => void (await run(rootsIn(connection).deleteOne({ _id: other }))),
    lease: leaseOn(connection, version, leaseMs),
    close: sets.close,
  };
};
