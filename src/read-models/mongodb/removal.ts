import type { MongoConnection } from '../../mongodb/connection';
import { wayOf } from './chain';
import { controlsIn, setOfCollection } from './layout';
import { findControl } from './set-reader';
import type { Transactions } from './transactions';

/**
 * Drops the collections of sets that do not exist: of a removed one, or what a suspended builder wrote after that. Lists
 * them first, since a set has its control document before it has collections.
 */
const dropOrphans = async (connection: MongoConnection): Promise<void> => {
  const { db } = connection;
  const listed = await db.listCollections({}, { nameOnly: true }).toArray();
  const sets = new Set(await controlsIn(connection).distinct('_id'));
  for (const { name } of listed) {
    const id = setOfCollection(name);
    if (id !== undefined && !sets.has(id)) await db.dropCollection(name);
  }
};

/**
 * False: it is in use, or was until a moment ago. Writes the mark first, so that the set cannot become a successor while
 * the way is walked. Where the way is broken, by this mark or before, nothing goes.
 */
export const removeSet = async (
  connection: MongoConnection,
  id: string,
  graceMs: number,
  transactions: Transactions,
): Promise<boolean> => {
  const controls = controlsIn(connection);
  const age = { $subtract: ['$$NOW', { $ifNull: ['$superseded_at', '$renewed_at'] }] };
  const old = { _id: id, $expr: { $gte: [age, graceMs] } };
  const isMarked = await transactions.run(async (session) => {
    const found = await controls.findOneAndUpdate(old, { $set: { removed: true } }, { session });
    const way = found === null ? undefined : await wayOf(connection, found.version, session);
    return way === undefined ? undefined : true;
  });
  if (isMarked !== true && (await findControl(connection, id)) !== null) return false;
  await controls.deleteOne({ _id: id });
  await dropOrphans(connection);
  return true;
};
