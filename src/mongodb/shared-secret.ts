import { randomBytes } from 'node:crypto';
import type { Db } from 'mongodb';
import { pause } from '../clock';
import { fault } from '../fault';
import { insertOnce } from './duplicates';

const COLLECTION = 'secrets';
const CURSORS = 'cursors';
const MIN_LENGTH = 32;

/** What another instance has just inserted is not readable before a majority has it. */
const ATTEMPTS = 50;
const AGAIN_MS = 100;

interface StoredSecret {
  readonly _id: string;
  readonly secret: string;
}

/** The secret that all instances sign cursors with: made once, by whoever comes first. */
export const sharedSecret = async (db: Db): Promise<string> => {
  const secrets = db.collection<StoredSecret>(COLLECTION);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const found = await secrets.findOne({ _id: CURSORS });
    if (found !== null) {
      // What is signed with an empty or cut secret could be forged.
      if (typeof found.secret === 'string' && found.secret.length >= MIN_LENGTH) return found.secret;
      break;
    }
    if (attempt > 0) await pause(AGAIN_MS);
    await insertOnce(secrets, { _id: CURSORS, secret: randomBytes(MIN_LENGTH).toString('base64url') });
  }
  throw fault(
    'read_models_unavailable',
    `The secret in the collection ${COLLECTION} of the database ${db.databaseName} cannot be used. Set SECRET, or remove the collection: a new secret is made then.`,
  );
};
