import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * `key_` + the tenant's id (22 characters) + 27 random characters (160 bits) + 6 of checksum, all base62 of fixed
 * width. A key names its tenant, so that a write needs only that tenant's stream to check it; the checksum turns down
 * typing errors without a look-up. Only the SHA-256 of a key is ever kept.
 */
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PATTERN = /^key_([0-9A-Za-z]{22})[0-9A-Za-z]{27}([0-9A-Za-z]{6})$/;
const HIGHEST = 2n ** 128n - 1n;
/** So many digits are held exactly by a plain number. */
const SHORT = 8;
const SHORTS = 62n ** BigInt(SHORT);

const toBase62 = (value: bigint, width: number): string => {
  let text = '';
  for (let rest = value; text.length < width; rest /= 62n) text = `${ALPHABET[Number(rest % 62n)]}${text}`;
  return text;
};

const shortFromBase62 = (text: string): number => {
  let value = 0;
  for (let at = 0; at < text.length; at += 1) value = value * 62 + ALPHABET.indexOf(text[at] as string);
  return value;
};

/** In short parts: every request with a key pays for this. */
const fromBase62 = (text: string): bigint => {
  let value = 0n;
  for (let at = text.length % SHORT; at <= text.length; at += SHORT)
    value = value * SHORTS + BigInt(shortFromBase62(text.slice(Math.max(0, at - SHORT), at)));
  return value;
};

export const makeKey = (tenantId: string): string => {
  const tenant = toBase62(BigInt(`0x${tenantId.replaceAll('-', '')}`), 22);
  const random = Array.from({ length: 27 }, () => ALPHABET[randomInt(62)]).join('');
  const body = `key_${tenant}${random}`;
  return `${body}${toBase62(BigInt(crc32(body)), 6)}`;
};

/** The tenant that a well-formed key names, or undefined when it is malformed. */
export const tenantOfKey = (key: string): string | undefined => {
  const match = PATTERN.exec(key);
  if (match === null || shortFromBase62(match[2] as string) !== crc32(key.slice(0, -6))) return undefined;
  const id = fromBase62(match[1] as string);
  if (id > HIGHEST) return undefined;
  const hex = id.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

export const digestOf = (key: string): string => hash('sha256', key);
