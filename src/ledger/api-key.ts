import { hash, randomInt, randomUUID } from 'node:crypto';
import type { NewKey } from '../domain/application-keys';
import { checksumOf, hasChecksum, KEY_ALPHABET, KEY_PATTERN } from '../domain/key-like';

/**
 * A key contains its tenant's id, so a write can check it with that tenant's stream alone; the checksum rejects typos
 * without a lookup. Only the SHA-256 of a key is ever stored.
 */
const MAX_UUID = 2n ** 128n - 1n;

/** How many base62 digits a number can represent exactly. */
const SHORT_DIGITS = 8;
const SHORT_RANGE = 62n ** BigInt(SHORT_DIGITS);

const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => KEY_ALPHABET.indexOf(String.fromCharCode(code)));

const shortFromBase62 = (text: string): number => {
  let value = 0;
  for (let at = 0; at < text.length; at += 1) value = value * 62 + (DIGITS[text.charCodeAt(at)] ?? 0);
  return value;
};

const toBase62 = (value: bigint, width: number): string => {
  let text = '';
  for (let rest = value; text.length < width; rest /= 62n)
    text = `${KEY_ALPHABET[Number(rest % 62n)]}${text}`;
  return text;
};

/** In chunks that fit a number, because every request with a key pays for this. */
const fromBase62 = (text: string): bigint => {
  let value = 0n;
  for (let at = text.length % SHORT_DIGITS; at <= text.length; at += SHORT_DIGITS)
    value = value * SHORT_RANGE + BigInt(shortFromBase62(text.slice(Math.max(0, at - SHORT_DIGITS), at)));
  return value;
};

export const makeKey = (tenantId: string): string => {
  const tenant = toBase62(BigInt(`0x${tenantId.replaceAll('-', '')}`), 22);
  const random = Array.from({ length: 27 }, () => KEY_ALPHABET[randomInt(62)]).join('');
  const body = `key_${tenant}${random}`;
  return `${body}${checksumOf(body)}`;
};

/** The id of the tenant in a key, or undefined if the key is malformed. */
export const tenantOfKey = (key: string): string | undefined => {
  const match = KEY_PATTERN.exec(key);
  if (match === null || !hasChecksum(key)) return undefined;
  const id = fromBase62(match[1] as string);
  if (id > MAX_UUID) return undefined;
  const hex = id.toString(16).padStart(32, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
};

export const digestOf = (key: string): string => hash('sha256', key);

/** A new key and what the log stores of it. The key itself is shown to the caller once. */
export const newKey = (
  tenantId: string,
  more: Pick<NewKey, 'expiresAt' | 'name'> = {},
): { readonly key: string; readonly input: NewKey } => {
  const key = makeKey(tenantId);
  return { key, input: { keyId: randomUUID(), digest: digestOf(key), ...more } };
};
