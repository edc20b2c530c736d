import type { AnyBulkWriteOperation, ClientSession, UpdateFilter } from 'mongodb';
import { randomUUID } from 'node:crypto';
import type { Collection } from '../../../projections/projector';
import { settleAll } from '../../async/concurrency';
import { fault } from '../../fault';
import type { Advanced, Commit, Control, ReadModelSet, Write } from '../read-models';
import { ABSENT, controlOf, controlsIn, idOf, indexedFields, isOpen, stored } from './layout';
import type { Stored, StoredControl } from './layout';
import { indexesFor } from './queries';
import { declaredIn, documentsIn, findControl, textOfKey, type OpenSet } from './set-reader';
import type { Transactions } from './transactions';

interface Prepared {
  readonly id: string;
  readonly n: number;
  readonly update: UpdateFilter<StoredControl>;
  /** By collection. */
  readonly operations: ReadonlyMap<string, AnyBulkWriteOperation<Stored>[]>;
}

/** In any order, so only the last write of each document counts. */
const operationsOf = (collection: Collection, writes: readonly Write[]): AnyBulkWriteOperation<Stored>[] => {
  const indexed = indexedFields(collection);
  const last = new Map(writes.map((write) => [textOfKey(write), write]));
  return [...last.values()].map(({ tenantId, key, document }) => {
    const filter = { _id: idOf(tenantId, key) };
    if (document === undefined) return { deleteOne: { filter } };
    return { replaceOne: { filter, replacement: stored(document, indexed), upsert: true } };
  });
};

const commitOf = (set: OpenSet, n: number, { to, writes, parked }: Commit): Prepared => {
  const names = [...new Set(writes.map(({ collection }) => collection))];
  const writesTo = (name: string) => writes.filter(({ collection }) => collection === name);
  const id = randomUUID();
  const position = to === undefined ? {} : { to: { position: to.position, event_id: to.eventId } };
  return {
    id,
    n,
    update: { $set: { n: n + 1, ...position, parked, commit_id: id } },
    operations: new Map(names.map((name) => [name, operationsOf(declaredIn(set, name), writesTo(name))])),
  };
};

/** Undefined: it is written. Otherwise somebody has written it since it was read, perhaps this very commit. */
const writeControl = async ({ connection, id }: OpenSet, commit: Prepared, session?: ClientSession) => {
  const controls = controlsIn(connection);
  const options = session === undefined ? {} : { session };
  const filter = { _id: id, n: commit.n, next: ABSENT, removed: ABSENT };
  const { matchedCount } = await controls.updateOne(filter, commit.update, options);
  if (matchedCount === 1) return undefined;
  const now = await controls.findOne({ _id: id }, options);
  if (now?.commit_id === commit.id) return 'done';
  return isOpen(now) ? 'overtaken' : 'superseded';
};

/** The control document comes first: whoever has written it holds the set until the transaction ends. */
const writeTogether = async (set: OpenSet, commit: Prepared, session: ClientSession): Promise<Advanced> => {
  const outcome = await writeControl(set, commit, session);
  if (outcome !== undefined) return outcome;
  for (const [name, operations] of commit.operations)
    await documentsIn(set, name).bulkWrite(operations, { session, ordered: false });
  return 'done';
};

/** The control document comes last. What was written before it is not undone, so a build that fails starts over. */
const writeBuild = async (set: OpenSet, commit: Prepared): Promise<Advanced> => {
  const all = [...commit.operations];
  const options = { ordered: false };
  await settleAll(all.map(([name, operations]) => documentsIn(set, name).bulkWrite(operations, options)));
  return (await writeControl(set, commit)) ?? 'done';
};

/**
 * Indexing a large collection takes longer than a command may. Only a command that succeeds proves that an index can be
 * used: a list of indexes has those that are still being built.
 */
const createIndexesOf = async (set: OpenSet, collection: Collection): Promise<void> => {
  const wanted = indexesFor(collection);
  while (wanted.length > 0)
    try {
      await documentsIn(set, collection.name).createIndexes(wanted);
      return;
    } catch (error) {
      if ((error as Error).name !== 'MongoNetworkTimeoutError') throw error;
    }
};

type SetWriter = Pick<ReadModelSet, 'advance' | 'renew' | 'finish'>;

export const setWriter = (set: OpenSet, transactions: Transactions): SetWriter => {
  const { connection, id } = set;
  let isHalfWritten = false;

  const build = async (commit: Prepared): Promise<Advanced> => {
    const outcome = await writeBuild(set, commit).finally(() => (isHalfWritten = true));
    isHalfWritten = outcome !== 'done';
    return outcome;
  };
  const commit = async (prepared: Prepared): Promise<Advanced> => {
    if (set.isBuild) return build(prepared);
    return (await transactions.run((session) => writeTogether(set, prepared, session))) ?? 'superseded';
  };
  const advance = async (work: (now: Control) => Promise<Commit | undefined>): Promise<Advanced> => {
    const before = await findControl(connection, id);
    if (!isOpen(before) || isHalfWritten) return 'superseded';
    const change = await work(controlOf(before));
    return change === undefined ? 'done' : connection.run(commit(commitOf(set, before.n, change)));
  };
  const finish = async (): Promise<void> => {
    if (!set.isBuild) return;
    if (isHalfWritten) throw fault('read_models_unavailable', `The build of the set ${id} was interrupted.`);
    await settleAll([...set.collections.values()].map((collection) => createIndexesOf(set, collection)));
    set.isBuild = false;
  };
  const renew = async (): Promise<boolean> => {
    const update = { $currentDate: { renewed_at: true } } as const;
    const { matchedCount } = await controlsIn(connection).updateOne({ _id: id, removed: ABSENT }, update);
    return matchedCount === 1 && !isHalfWritten;
  };
  return { advance, renew: () => connection.run(renew()), finish: () => connection.run(finish()) };
};
