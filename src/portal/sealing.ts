import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { parsedJson } from '../json';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts values for ourselves: nobody else can read, alter or make one. AES-256-GCM with a key derived from the secret: what
 * is sealed for one purpose is useless for another.
 */
export const sealing = <T>(secret: string, purpose: string) => {
  const key = Buffer.from(hkdfSync('sha256', secret, '', `tenant-ledger ${purpose}`, KEY_BYTES));
  const decrypted = (bytes: Buffer): string => {
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    return Buffer.concat([
      decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)),
      decipher.final(),
    ]).toString();
  };
  return {
    seal: (value: T): string => {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(ALGORITHM, key, iv, { authTagLength: TAG_BYTES });
      const text = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
    },
    /** Undefined: it was not sealed here, for this purpose and with this secret. */
    open: (sealed: string): T | undefined => {
      try {
        return parsedJson(decrypted(Buffer.from(sealed, 'base64url'))) as T | undefined;
      } catch {
        return undefined;
      }
    },
  };
};
