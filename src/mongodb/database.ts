import type { Db } from 'mongodb';
import { randomBytes } from 'node:crypto';
import { fault } from '../fault';

const SECRETS = 'secrets';

/** Collections besides the read models. All may be lost, but without the secrets, the sessions of the portal end. */
const SHARED = new Set(['rate_counters', SECRETS]);

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

const MIN_SECRET_LENGTH = 32;

/** The secret with which all instances seal the sessions of the portal, generated once by the first instance. */
export const sharedSecret = async (db: Db): Promise<string> => {
  // An update, though it changes nothing later: a read would not see what another instance has inserted before a majority has it.
  const found = await db
    .collection<{ readonly _id: string; readonly secret: string }>(SECRETS)
    .findOneAndUpdate(
      { _id: 'portal' },
      { $setOnInsert: { secret: randomBytes(MIN_SECRET_LENGTH).toString('base64url') } },
      { upsert: true, returnDocument: 'after' },
    );
  // With an empty or truncated secret, sessions could be forged.
  if (typeof found?.secret === 'string' && found.secret.length >= MIN_SECRET_LENGTH) return found.secret;
  throw fault(
    'read_models_unavailable',
    `The secret in the collection ${SECRETS} of the database ${db.databaseName} cannot be used. Set SECRET, or drop the collection: then a new secret is generated.`,
    { isFinal: true },
  );
};
