// oxlint-disable-next-line no-restricted-imports -- a pure function of the standard library
import { crc32 } from 'node:zlib';
import { invalidValue } from './refusal';

/** For Tenants, Applications and keys, in UTF-16 units. */
export const MAX_NAME_LENGTH = 200;

/** What is wrong with a name, or undefined. HTTP and the command line share this rule. */
export const nameFault = (name: string): string | undefined => {
  if (name.trim() === '') return 'must not be blank';
  if (name.length > MAX_NAME_LENGTH) return `must be at most ${MAX_NAME_LENGTH} characters long`;
  if (!name.isWellFormed()) return 'must be well-formed Unicode (it contains a lone surrogate)';
  if (looksLikeKey(name)) return 'must not contain an API key';
  return undefined;
};

export const mustBeName = (name: string): void => {
  const fault = nameFault(name);
  if (fault !== undefined) throw invalidValue('name', `The name ${fault}.`);
};

/** Lower case, as ids are stored and compared. */
export const UUID_PATTERN = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

const UUID = new RegExp(`^${UUID_PATTERN}$`);

/** Converts to the stored lower case. Undefined if it is not a UUID. */
export const uuidFrom = (value: unknown): string | undefined => {
  const lower = typeof value === 'string' ? value.toLowerCase() : '';
  return UUID.test(lower) ? lower : undefined;
};

/** Whether no text in it, names of members included, has half of a character. */
export const isWellFormed = (root: unknown): boolean => {
  // No recursion: whoever writes into the log may nest values as deep as they like.
  const todo = [root];
  while (todo.length > 0) {
    const value = todo.pop();
    if (typeof value === 'string' && !value.isWellFormed()) return false;
    if (typeof value !== 'object' || value === null) continue;
    for (const [name, member] of Object.entries(value)) {
      if (!name.isWellFormed()) return false;
      todo.push(member);
    }
  }
  return true;
};

const TRACE_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Trace ids are logged, stored and sent back, so one must not be an API key. */
export const isTraceId = (text: string): boolean => TRACE_ID.test(text) && !looksLikeKey(text);

/**
 * The format of an API key: `key_`, the tenant's id (22 characters), 27 random characters (160 bits) and a checksum of 6
 * (CRC-32 of everything before it), each in base62 of fixed width. That of a service: `svc_`, 27 and 6.
 */
export const KEY_ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CHECKSUM_LENGTH = 6;

/** The checksum that follows the rest of a key. */
const checksumOf = (rest: string): string => {
  let text = '';
  for (let value = crc32(rest); text.length < CHECKSUM_LENGTH; value = Math.floor(value / 62))
    text = `${KEY_ALPHABET[value % 62]}${text}`;
  return text;
};

export const withChecksum = (rest: string): string => `${rest}${checksumOf(rest)}`;

/** Tells a key from a typo. */
export const hasChecksum = (key: string): boolean => key.endsWith(checksumOf(key.slice(0, -CHECKSUM_LENGTH)));

/**
 * Detects what might be an API key. Clients send keys in the wrong places, whole, truncated or mistyped; such text must
 * not be stored, logged or sent back.
 */
const WHOLE_KEY = /(?:key_(?=([0-9A-Za-z]{55}))|svc_(?=([0-9A-Za-z]{33})))/g;
/** A truncated or mistyped key at the start of a word. */
const DAMAGED_KEY = /(?<![\p{L}\p{N}_])(?:key_[0-9A-Za-z]{40}|svc_[0-9A-Za-z]{30})/u;

/** Certainly a key or part of one: refused as a name, idempotency key, trace id or text of a fact. */
export const looksLikeKey = (text: string): boolean =>
  (text.includes('key_') || text.includes('svc_')) &&
  (DAMAGED_KEY.test(text) ||
    [...text.matchAll(WHOLE_KEY)].some(([start, ofTenant, ofService]) =>
      hasChecksum(`${start}${ofTenant ?? ofService}`),
    ));

/**
 * What is masked: the start of a key, and every long word of digits, small and capital letters. The group in front leaves
 * trace ids alone, which were checked when they were accepted and must stay searchable, and JSON escapes, whose letter is
 * no part of the word behind it.
 */
const MASKED =
  /("trace_id":"[\w.:-]*"|\\(?:u[0-9a-f]{4}|.))|(?:[Kk]ey|[Ss]vc)_[0-9A-Za-z]{16,}|(?<=^|\W|\\.|\\u[0-9a-f]{4})(?=\w*\d)(?=\w*[a-z])(?=\w*[A-Z])\w{40,}/g;

/** Whatever is masked contains such a word, and most texts do not. */
const LONG_WORD = /\w{20}/;

/** Masks everything that might be a key, erring on the side of too much. */
export const masked = (text: string): string =>
  LONG_WORD.test(text)
    ? text.replaceAll(MASKED, (run, kept?: string) => {
        if (kept !== undefined) return run;
        return /^svc_/i.test(run) ? 'svc_***' : 'key_***';
      })
    : text;

export const DAY_MS = 86_400_000;

const EXTENDED = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/;

/**
 * Parses ISO 8601 in its extended form: with `Z`, with an offset, without one (UTC), with a fraction, or a date alone
 * (midnight UTC). Returns the canonical form, which sorts as text, or undefined. Years outside 0000 to 9999 in UTC would
 * not sort, so they are undefined too.
 */
export const parseMoment = (text: string): string | undefined => {
  const [, date, time = '00:00', zone = 'Z'] = EXTENDED.exec(text.toUpperCase()) ?? [];
  const milliseconds = Date.parse(`${date}T${time}${zone}`);
  if (date === undefined || Number.isNaN(milliseconds) || !isRealDate(date)) return undefined;
  const moment = new Date(milliseconds).toISOString();
  return /^\d{4}-/.test(moment) ? moment : undefined;
};

/**
 * Parses the bound of a date range, rounded up to the next millisecond: stored times have millisecond precision, so a
 * bound within a millisecond lies after everything stored in it.
 */
export const parseBound = (text: string): string | undefined => {
  const moment = parseMoment(text);
  if (moment === undefined || !/\.\d{3}\d*[1-9]/.test(text)) return moment;
  return parseMoment(new Date(Date.parse(moment) + 1).toISOString()) ?? moment;
};

/** The canonical form of a valid RFC 3339 date-time. Most already have it. */
export const canonicalTime = (dateTime: string): string =>
  dateTime.length === 24 && dateTime[10] === 'T' && dateTime[23] === 'Z'
    ? dateTime
    : new Date(dateTime).toISOString();

/** A month of UTC as `2026-01`. */
export const MONTH_PATTERN = '^[0-9]{4}-(0[1-9]|1[0-2])$';
const MONTH = new RegExp(MONTH_PATTERN);
export const isMonth = (text: string): boolean => MONTH.test(text);

/** `2026-02-31` is not, although `Date` turns it into a day in March. */
const isRealDate = (date: string): boolean => {
  const parsed = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(date);
};
