import type { Db } from 'mongodb';
import { fault } from '../fault';

/** Collections besides the read models. All may be lost, but without the secrets, the sessions of the portal end. */
const SHARED = new Set(['rate_counters', 'secrets']);

/** `<collection>_<id of the set>`, and the collections about all sets. */
const READ_MODELS = /^(?:read_model_(?:sets|roots|leases)|[a-z_]+_[0-9a-f]{16})$/;

/** Throws if another program uses the database, before anything is written to it. */
export const holdsReadModels = async (db: Db, place: string): Promise<boolean> => {
  const found = await db.listCollections({}, { nameOnly: true }).toArray();
  const names = found.map(({ name }) => name).filter((name) => !name.startsWith('system.'));
  const hasReadModels = names.some((name) => READ_MODELS.test(name));
  if (hasReadModels || names.length === 0 || names.some((name) => SHARED.has(name))) return hasReadModels;
  throw fault(
    'configuration_invalid',
    `The database of MongoDB at ${place} belongs to another program: it has ${names.length === 1 ? 'the collection' : 'collections such as'} ${names[0]}. Name a database for this service alone in MONGODB_URL. Nothing was written.`,
  );
};
