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
 * What `masked` looks at. Trace ids were checked when they were accepted and must stay searchable, so they are left
 * alone. JSON escapes are matched whole: masking the letter after a backslash would break the JSON.
 */
const LONG = 40;
const TRACE_ID = '"trace_id":"[A-Za-z0-9._:-]*"';
const MASKED = new RegExp(`${TRACE_ID}|\\\\(?:u[0-9a-f]{4}|.)|[0-9a-z_]{${LONG},}|key_[0-9a-z]{16,}`, 'gi');
const isMixed = (run: string): boolean => /[0-9]/.test(run) && /[a-z]/.test(run) && /[A-Z]/.test(run);

const MASK = 'key_***';
const KEY_START = /key_[0-9a-z]{16,}/gi;

/** A cheap pre-check: only a run of at least this many letters, digits and underscores needs the regular expression. */
const MIN_LENGTH = 20;
const isWord = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[0-9A-Za-z_]/.test(String.fromCharCode(code))),
);
const hasRun = (text: string): boolean => {
  let from = 0;
  while (from + MIN_LENGTH <= text.length) {
    // Scan backwards: the next run can only start after the last character that is not part of one.
    let at = from + MIN_LENGTH - 1;
    while (at >= from && isWord[text.charCodeAt(at)] === 1) at -= 1;
    if (at < from) return true;
    from = at + 1;
  }
  return false;
};

const maskOf = (run: string): string => {
  if (run.startsWith('\\') || run.startsWith('"')) return run;
  return run.length >= LONG && isMixed(run) ? MASK : run.replaceAll(KEY_START, MASK);
};

/** Masks everything that might be a key, erring on the side of too much. */
export const masked = (text: string): string => (hasRun(text) ? text.replaceAll(MASKED, maskOf) : text);
