import { randomBytes } from 'node:crypto';
import type { Db } from 'mongodb';
import { pause } from '../async/clock';
import { fault } from '../fault';
import { insertOnce } from './duplicates';

const COLLECTION = 'secrets';
const CURSORS = 'cursors';
const MIN_LENGTH = 32;

/** A secret just inserted by another instance is not readable until a majority has it. */
const MAX_ATTEMPTS = 50;
const RETRY_MS = 100;

interface StoredSecret {
  readonly _id: string;
  readonly secret: string;
}

/** The secret with which all instances sign cursors, generated once by the first instance. */
export const sharedSecret = async (db: Db): Promise<string> => {
  const secrets = db.collection<StoredSecret>(COLLECTION);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const found = await secrets.findOne({ _id: CURSORS });
    if (found !== null) {
      // With an empty or truncated secret, signatures could be forged.
      if (typeof found.secret === 'string' && found.secret.length >= MIN_LENGTH) return found.secret;
      break;
    }
    if (attempt > 0) await pause(RETRY_MS);
    await insertOnce(secrets, { _id: CURSORS, secret: randomBytes(MIN_LENGTH).toString('base64url') });
  }
  throw fault(
    'read_models_unavailable',
    `The secret in the collection ${COLLECTION} of the database ${db.databaseName} cannot be used. Set SECRET, or drop the collection: then a new secret is generated.`,
  );
};
