import { hasChecksum } from './key-format';

/**
 * What might be an API key. Clients send keys where they do not belong, whole, cut or mistyped; such a text must not be
 * kept, logged or sent back.
 */
const WHOLE_KEY = /key_(?=([0-9A-Za-z]{55}))/g;
/** A key that was cut or mistyped, at the beginning of a word. */
const DAMAGED_KEY = /(?<![\p{L}\p{N}_])key_[0-9A-Za-z]{40}/u;

/** Surely a key, or what is left of one: such a name, idempotency key or trace id is not accepted. Other texts are. */
export const looksLikeKey = (text: string): boolean =>
  text.includes('key_') &&
  (DAMAGED_KEY.test(text) ||
    [...text.matchAll(WHOLE_KEY)].some(([start, rest]) => hasChecksum(start + rest)));

/**
 * What the mask is for. A trace id was accepted as one before it came into a line or a body, and must be found there. The
 * letter of a JSON escape belongs to its backslash: without it the rest would be no JSON.
 */
const LONG = 40;
const TRACE_ID = '"trace_id":"[A-Za-z0-9._:-]*"';
const MASKED = new RegExp(`${TRACE_ID}|\\\\(?:u[0-9a-f]{4}|.)|[0-9a-z_]{${LONG},}|key_[0-9a-z]{16,}`, 'gi');
const isMixed = (run: string): boolean => /[0-9]/.test(run) && /[a-z]/.test(run) && /[A-Z]/.test(run);

const MASK = 'key_***';
const KEY_START = /key_[0-9a-z]{16,}/gi;

/** Is there a run of letters, digits and underscores that is long enough to be looked at? Most texts have none. */
const MIN_LENGTH = 20;
const isWord = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[0-9A-Za-z_]/.test(String.fromCharCode(code))),
);
const hasRun = (text: string): boolean => {
  let from = 0;
  while (from + MIN_LENGTH <= text.length) {
    // From the end of a possible run: the last character that is no part of it tells where the next one may begin.
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

/** The text with a mask in place of everything that might be a key: rather too much than too little. */
export const masked = (text: string): string => (hasRun(text) ? text.replaceAll(MASKED, maskOf) : text);
