import { randomBytes } from 'node:crypto';
import type { Db } from 'mongodb';
import { fault } from '../fault';
import { insertOnce } from './duplicates';

const COLLECTION = 'secrets';
const PORTAL = 'portal';
const MIN_LENGTH = 32;

interface StoredSecret {
  readonly _id: string;
  readonly secret: string;
}

/** The secret with which all instances seal the sessions of the portal, generated once by the first instance. */
export const sharedSecret = async (db: Db): Promise<string> => {
  const secrets = db.collection<StoredSecret>(COLLECTION);
  const secret = randomBytes(MIN_LENGTH).toString('base64url');
  await insertOnce(secrets, { _id: PORTAL, secret });
  // By an update, though it changes nothing: a read would not see what another instance has inserted before a majority has it.
  const found = await secrets.findOneAndUpdate({ _id: PORTAL }, { $setOnInsert: { secret } });
  // With an empty or truncated secret, sessions could be forged.
  if (typeof found?.secret === 'string' && found.secret.length >= MIN_LENGTH) return found.secret;
  throw fault(
    'read_models_unavailable',
    `The secret in the collection ${COLLECTION} of the database ${db.databaseName} cannot be used. Set SECRET, or drop the collection: then a new secret is generated.`,
  );
};
