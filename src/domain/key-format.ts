/**
 * The format of an API key: `key_`, the tenant's id (22 characters), 27 random characters (160 bits) and a checksum of 6
 * (CRC-32 of everything before it), each in base62 of fixed width.
 */
export const KEY_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
export const KEY_PATTERN = /^key_([0-9A-Za-z]{22})[0-9A-Za-z]{33}$/;
export const CHECKSUM_LENGTH = 6;

const POLYNOMIAL = 0xedb88320;
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ POLYNOMIAL : rest >>> 1;
  return rest;
});

/** CRC-32 of an ASCII text. */
export const crc32 = (text: string): number => {
  let crc = -1;
  for (let at = 0; at < text.length; at += 1)
    crc = (CRC_TABLE[(crc ^ text.charCodeAt(at)) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ -1) >>> 0;
};

/** How many base62 digits a number can represent exactly. */
export const SHORT_DIGITS = 8;

const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => KEY_ALPHABET.indexOf(String.fromCharCode(code)));

export const shortFromBase62 = (text: string): number => {
  let value = 0;
  for (let at = 0; at < text.length; at += 1) value = value * 62 + (DIGITS[text.charCodeAt(at)] ?? 0);
  return value;
};

const SHORT_DIGEST_LENGTH = 8;

/** Enough of a key's digest to recognise the key, and too little to check guesses at it. */
export const shortDigest = (digest: string): string => digest.slice(0, SHORT_DIGEST_LENGTH);

/** Tells a key from a typo, for texts that match KEY_PATTERN. */
export const hasChecksum = (key: string): boolean =>
  shortFromBase62(key.slice(-CHECKSUM_LENGTH)) === crc32(key.slice(0, -CHECKSUM_LENGTH));
