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

/** `2026-02-31` is not, although `Date` turns it into a day in March. */
const isRealDate = (date: string): boolean => {
  const parsed = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(date);
};
