import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import { TIMES } from '../times';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Names the sessions of a key. It is not the key's own digest, which is what the ledger knows it by. */
export const identityOf = (key: string): string => hash('sha256', `portal session ${key}`, 'base64url');

/**
 * A session is an API key and the time at which it ends, encrypted into a cookie for ourselves: nobody else can read, alter
 * or make one. Nothing is stored here, and scripts never see the key.
 */
export const sessions = (secret: string, now: () => number = Date.now) => {
  const sealingKey = Buffer.from(hkdfSync('sha256', secret, '', 'tenant-ledger portal session', KEY_BYTES));
  const decrypted = (sealed: Buffer): string => {
    const iv = sealed.subarray(0, IV_BYTES);
    const decipher = createDecipheriv(ALGORITHM, sealingKey, iv, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(sealed.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return decipher.update(sealed.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
  };
  return {
    cookieOf: (key: string): string => {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(ALGORITHM, sealingKey, iv, { authTagLength: TAG_BYTES });
      const text = Buffer.concat([cipher.update(`${now() + TIMES.sessionMs} ${key}`), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
    },
    /** There is none if the session has expired, or the cookie was not made here with this secret. */
    keyIn: (cookie: string): string | undefined => {
      try {
        const [until = '', key] = decrypted(Buffer.from(cookie, 'base64url')).split(' ');
        return Number(until) > now() ? key : undefined;
      } catch {
        return undefined;
      }
    },
  };
};
