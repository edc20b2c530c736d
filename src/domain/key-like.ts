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

/** Is there a run of letters, digits and underscores that is long enough to be looked at? Most texts have none. */
const SHORTEST = 20;
const isWord = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[0-9A-Za-z_]/.test(String.fromCharCode(code))),
);
const hasRun = (text: string): boolean => {
  let from = 0;
  while (from + SHORTEST <= text.length) {
    // From the end of a possible run: the last character that is no part of it tells where the next one may begin.
    let at = from + SHORTEST - 1;
    while (at >= from && isWord[text.charCodeAt(at)] === 1) at -= 1;
    if (at < from) return true;
    from = at + 1;
  }
  return false;
};

/** The text with a mask in place of everything that might be a key: rather too much than too little. */
export const masked = (text: string): string =>
  hasRun(text)
    ? text
        .replaceAll(LONG_RUN, (run) => (run[0] !== '\\' && isMixed(run) ? MASK : run))
        .replaceAll(/key_[0-9a-z]{16,}/gi, MASK)
    : text;
