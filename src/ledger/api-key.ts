import { hash, randomInt } from 'node:crypto';
import {
  CHECKSUM_LENGTH,
  crc32,
  hasChecksum,
  KEY_ALPHABET,
  KEY_PATTERN,
  SHORT_DIGITS,
  shortFromBase62,
} from '../domain/key-format';

/**
 * A key names its tenant, so that a write needs only that tenant's stream to check it; the checksum turns down typing
 * errors without a look-up. Only the SHA-256 of a key is ever kept.
 */
const HIGHEST = 2n ** 128n - 1n;
const SHORTS = 62n ** BigInt(SHORT_DIGITS);

const toBase62 = (value: bigint, width: number): string => {
  let text = '';
  for (let rest = value; text.length < width; rest /= 62n)
    text = `${KEY_ALPHABET[Number(rest % 62n)]}${text}`;
  return text;
};

/** In short parts: every request with a key pays for this. */
const fromBase62 = (text: string): bigint => {
  let value = 0n;
  for (let at = text.length % SHORT_DIGITS; at <= text.length; at += SHORT_DIGITS)
    value = value * SHORTS + BigInt(shortFromBase62(text.slice(Math.max(0, at - SHORT_DIGITS), at)));
  return value;
};

export const makeKey = (tenantId: string): string => {
  const tenant = toBase62(BigInt(`0x${tenantId.replaceAll('-', '')}`), 22);
  const random = Array.from({ length: 27 }, () => KEY_ALPHABET[randomInt(62)]).join('');
  const body = `key_${tenant}${random}`;
  return `${body}${toBase62(BigInt(crc32(body)), CHECKSUM_LENGTH)}`;
};

/** The tenant that a well-formed key names, or undefined when it is malformed. */
export const tenantOfKey = (key: string): string | undefined => {
  const match = KEY_PATTERN.exec(key);
  if (match === null || !hasChecksum(key)) return undefined;
  const id = fromBase62(match[1] as string);
  if (id > HIGHEST) return undefined;
  const hex = id.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

export const digestOf = (key: string): string => hash('sha256', key);
