// oxlint-disable-next-line no-restricted-imports -- a pure function of the standard library
import { crc32 } from 'node:zlib';

/**
 * The format of an API key: `key_`, the tenant's id (22 characters), 27 random characters (160 bits) and a checksum of 6
 * (CRC-32 of everything before it), each in base62 of fixed width.
 */
export const KEY_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
export const KEY_PATTERN = /^key_([0-9A-Za-z]{22})[0-9A-Za-z]{33}$/;
const CHECKSUM_LENGTH = 6;

/** The checksum that follows the rest of a key. */
export const checksumOf = (rest: string): string => {
  let text = '';
  for (let value = crc32(rest); text.length < CHECKSUM_LENGTH; value = Math.floor(value / 62))
    text = `${KEY_ALPHABET[value % 62]}${text}`;
  return text;
};

/** Tells a key from a typo. */
export const hasChecksum = (key: string): boolean => key.endsWith(checksumOf(key.slice(0, -CHECKSUM_LENGTH)));

/** Enough of a key's digest to recognise the key, and too little to check guesses at it. */
export const shortDigest = (digest: string): string => digest.slice(0, 8);

/**
 * Detects what might be an API key. Clients send keys in the wrong places, whole, truncated or mistyped; such text must
 * not be stored, logged or sent back.
 */
const WHOLE_KEY = /key_(?=([0-9A-Za-z]{55}))/g;
/** A truncated or mistyped key at the start of a word. */
const DAMAGED_KEY = /(?<![\p{L}\p{N}_])key_[0-9A-Za-z]{40}/u;

const KEY_IN_TEXT = /key_[0-9A-Za-z]{55}(?![0-9A-Za-z])/g;

/** The complete keys in a text, such as the report of a scanner; each once. */
export const keysIn = (text: string): readonly string[] => [
  ...new Set(Array.from(text.matchAll(KEY_IN_TEXT), ([key]) => key).filter(hasChecksum)),
];

/** Certainly a key or part of one: refused as a name, idempotency key or trace id. */
export const looksLikeKey = (text: string): boolean =>
  text.includes('key_') &&
  (DAMAGED_KEY.test(text) ||
    [...text.matchAll(WHOLE_KEY)].some(([start, rest]) => hasChecksum(start + rest)));

/**
 * What is masked: the start of a key, and every long word of digits, small and capital letters. The group in front leaves
 * trace ids alone, which were checked when they were accepted and must stay searchable, and JSON escapes, whose letter is
 * no part of the word behind it.
 */
const MASKED =
  /("trace_id":"[\w.:-]*"|\\(?:u[0-9a-f]{4}|.))|[Kk]ey_[0-9A-Za-z]{16,}|(?<=^|\W|\\.|\\u[0-9a-f]{4})(?=\w*\d)(?=\w*[a-z])(?=\w*[A-Z])\w{40,}/g;

/** Whatever is masked contains such a word, and most texts do not. */
const LONG_WORD = /\w{20}/;

/** Masks everything that might be a key, erring on the side of too much. */
export const masked = (text: string): string =>
  LONG_WORD.test(text)
    ? text.replaceAll(MASKED, (run, kept?: string) => (kept === undefined ? 'key_***' : run))
    : text;
