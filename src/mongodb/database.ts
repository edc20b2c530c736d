import type { Db } from 'mongodb';
import { fault } from '../fault';

/** Beside the read models. Counters and last uses may be lost; without the secret, cursors that clients hold are invalid. */
const SHARED = new Set(['rate_counters', 'key_uses', 'secrets']);

/** `<projection>_v<version>_<generation>…`, and what is kept of all of them. */
const READ_MODELS = /^(?:read_models\..*|[a-z_]+_v[0-9]+_[0-9]+(?:[._/-].*)?)$/;

/** A start refuses a database that another program uses before anything is written to it. */
export const holdsReadModels = async (db: Db, place: string): Promise<boolean> => {
  const found = await db.listCollections({}, { nameOnly: true }).toArray();
  const names = found.map(({ name }) => name).filter((name) => !name.startsWith('system.'));
  const holds = names.some((name) => READ_MODELS.test(name));
  if (holds || names.length === 0 || names.some((name) => SHARED.has(name))) return holds;
  throw fault(
    'database_of_another_program',
    `The database of MongoDB at ${place} belongs to another program: it has ${names.length === 1 ? 'the collection' : 'collections such as'} ${names[0]}. Name a database of its own in MONGODB_URL. Nothing was written.`,
  );
};
