/**
 * What might be an API key. Clients send keys where they do not belong, whole, cut or mistyped; such a text must not be
 * kept, logged or sent back.
 */
const KEY = /key_[0-9a-z]{16,}/i;

/** A key without its beginning, or with a spoilt one, is still 55 mixed characters. Hashes and words are not mixed. */
const BODY = /(?<![0-9A-Za-z])[0-9A-Za-z]{55}(?![0-9A-Za-z])/g;
/** The letter of a JSON escape belongs to its backslash: without it the rest would be no JSON. */
const LONG_RUN = /\\(?:u[0-9a-f]{4}|.)|[0-9A-Za-z_]{40,}/gi;
const isMixed = (run: string): boolean => /[0-9]/.test(run) && /[a-z]/.test(run) && /[A-Z]/.test(run);

const MASK = 'key_***';

/** Sure enough to refuse it. */
export const looksLikeKey = (text: string): boolean =>
  KEY.test(text) || (text.match(BODY) ?? []).some(isMixed);

/** The text with a mask in place of everything that might be a key: rather too much than too little. */
export const masked = (text: string): string =>
  text
    .replaceAll(LONG_RUN, (run) => (run[0] !== '\\' && isMixed(run) ? MASK : run))
    .replaceAll(/key_[0-9a-z]{16,}/gi, MASK);
