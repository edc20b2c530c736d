import { hasChecksum } from './key-format';

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

/** Masks everything that might be a key, erring on the side of too much. */
export const masked = (text: string): string =>
  text.replaceAll(MASKED, (run, kept?: string) => (kept === undefined ? 'key_***' : run));
