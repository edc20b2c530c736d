import { randomBytes } from 'node:crypto';
import type { Collection } from '../../../projections/projector';
import { settleAll } from '../../async/concurrency';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import { COMMON_COLLECTIONS, type ReadModels, type ReadModelSet, type SetInfo } from '../read-models';
import { liveFinder, switching } from './chain';
import { collectionName, controlOf, controlsIn, rootsIn } from './layout';
import { leaseOn } from './lease';
import { removeSet } from './removal';
import { findControl, setReader, type OpenSet } from './set-reader';
import { setWriter } from './set-writer';
import { transactionsOn, type Transactions } from './transactions';

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

/** The sets that this process has opened. */
const openSets = (
  connection: MongoConnection,
  collections: ReadonlyMap<string, Collection>,
  transactions: Transactions,
) => {
  const opened = new Map<string, ReadModelSet>();
  const open = (id: string, isBuild: boolean): ReadModelSet => {
    const state: OpenSet = { connection, id, collections, isBuild };
    const control: ReadModelSet['control'] = async () => {
      const found = await findControl(connection, id);
      if (found === null || found.removed === true)
        throw fault('read_model_set_removed', `There is no set ${id} in ${connection.place} any more.`);
      return controlOf(found);
    };
    const set = { id, control, ...setReader(state), ...setWriter(state, transactions) };
    opened.set(id, set);
    return set;
  };
  const create = async (version: string, log: string): Promise<ReadModelSet> => {
    const id = randomBytes(8).toString('hex');
    const control = { version, log, n: 0, parked: 0 };
    const now = { $currentDate: { renewed_at: true as const } };
    await controlsIn(connection).updateOne({ _id: id }, { $set: control, ...now }, { upsert: true });
    const names = [...collections.keys()].map((name) => collectionName(id, name));
    await settleAll(names.map((name) => connection.db.createCollection(name)));
    return open(id, true);
  };
  const get = (id: string): ReadModelSet => opened.get(id) ?? open(id, false);
  return { create, get, forget: (id: string) => opened.delete(id) };
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
  const transactions = transactionsOn(connection);
  const declared = new Map([...collections, ...COMMON_COLLECTIONS].map((one) => [one.name, one]));
  const sets = openSets(connection, declared, transactions);
  const findLive = liveFinder(connection, version);
  const succeed = switching(connection, version, transactions);
  return {
    version,
    live: async () => {
      const found = await run(findLive());
      return found === undefined ? undefined : { set: sets.get(found._id), control: controlOf(found) };
    },
    create: (log) => run(sets.create(version, log)),
    succeed: async (built, former, { evenIfBehind = false } = {}) => {
      await sets.get(built.id).finish();
      return run(succeed(built.id, former?.id, evenIfBehind));
    },
    list: () => run(list(connection)),
    remove: async (id) => {
      const isRemoved = await run(removeSet(connection, id, graceMs, transactions));
      if (isRemoved) sets.forget(id);
      return isRemoved;
    },
    abandon: async (other) => void (await run(rootsIn(connection).deleteOne({ _id: other }))),
    lease: leaseOn(connection, version, transactions, leaseMs),
    close: transactions.close,
  };
};
