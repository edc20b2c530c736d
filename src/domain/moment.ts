const ZONE = String.raw`(Z|[+-]\d{2}(?::?\d{2})?)?`;
const FRACTION = String.raw`[.,]\d{1,9}`;
const EXTENDED = new RegExp(
  String.raw`^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2}(?:${FRACTION})?))?${ZONE})?$`,
  'i',
);
const BASIC = new RegExp(
  String.raw`^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2}(?:${FRACTION})?)?${ZONE})?$`,
  'i',
);

/** An offset in the one form that every parser knows. */
const zoneOf = (zone: string): string =>
  zone.replace(/^([+-]\d{2}):?(\d{2})?$/, (_, hours: string, minutes = '00') => `${hours}:${minutes}`);

/**
 * A moment in ISO 8601, in any of the forms that people write: extended (`2026-01-31T12:00:00`) or basic
 * (`20260131T120000`), with `Z`, with an offset, without one (UTC), or a date alone (midnight UTC); a fraction is
 * after a point or a comma. Gives the one form that we keep, whose text order is its order, or undefined; so a moment
 * outside the years 0000 to 9999 in UTC is none.
 */
export const parseMoment = (text: string): string | undefined => {
  const match = EXTENDED.exec(text) ?? BASIC.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour = '00', minute = '00', second = '00', zone = 'Z'] = match;
  const date = `${year}-${month}-${day}`;
  const time = `${hour}:${minute}:${second.replace(',', '.')}`;
  const milliseconds = Date.parse(`${date}T${time}${zoneOf(zone).toUpperCase()}`);
  if (Number.isNaN(milliseconds) || !isRealDate(date)) return undefined;
  const moment = new Date(milliseconds).toISOString();
  return /^\d{4}-/.test(moment) ? moment : undefined;
};

/**
 * The first moment of the form that we keep which is not before the text's: what we keep is dated to the millisecond, and
 * a border that names a part of one lies after it.
 */
export const parseBorder = (text: string): string | undefined => {
  const moment = parseMoment(text);
  if (moment === undefined || !/[.,]\d{3}\d*[1-9]/.test(text)) return moment;
  return parseMoment(new Date(Date.parse(moment) + 1).toISOString()) ?? moment;
};

/** A valid date-time (RFC 3339) in the form that we keep, which most of them already have. */
export const canonicalTime = (dateTime: string): string =>
  dateTime.length === 24 && dateTime[10] === 'T' && dateTime[23] === 'Z'
    ? dateTime
    : new Date(dateTime).toISOString();

/** `2026-02-31` is none, although some parsers make it March. */
const isRealDate = (date: string): boolean => {
  const parsed = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(date);
};
