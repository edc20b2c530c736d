import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * `key_` + the tenant's id (22 characters) + 27 random characters (160 bits) + 6 of checksum, all base62 of fixed
 * width. A key names its tenant, so that a write needs only that tenant's stream to check it; the checksum turns down
 * typing errors without a look-up. Only the SHA-256 of a key is ever kept.
 */
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PATTERN = /^key_([0-9A-Za-z]{22})[0-9A-Za-z]{27}([0-9A-Za-z]{6})$/;
const UUID = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;

const toBase62 = (value: bigint, width: number): string => {
  let text = '';
  for (let rest = value; text.length < width; rest /= 62n) text = `${ALPHABET[Number(rest % 62n)]}${text}`;
  return text;
};

const fromBase62 = (text: string): bigint =>
  Array.from(text).reduce((value, character) => value * 62n + BigInt(ALPHABET.indexOf(character)), 0n);

const checksum = (text: string): string => toBase62(BigInt(crc32(text)), 6);

export const makeKey = (tenantId: string): string => {
  const tenant = toBase62(BigInt(`0x${tenantId.replaceAll('-', '')}`), 22);
  const random = Array.from({ length: 27 }, () => ALPHABET[randomInt(62)]).join('');
  const body = `key_${tenant}${random}`;
  return `${body}${checksum(body)}`;
};

/** The tenant that a well-formed key names, or undefined when it is malformed. */
export const tenantOfKey = (key: string): string | undefined => {
  const match = PATTERN.exec(key);
  if (match === null || checksum(key.slice(0, -6)) !== match[2]) return undefined;
  const hex = fromBase62(match[1] as string)
    .toString(16)
    .padStart(32, '0');
  return UUID.test(hex) ? hex.replace(UUID, '$1-$2-$3-$4-$5') : undefined;
};

export const digestOf = (key: string): string => createHash('sha256').update(key).digest('hex');
