const MOMENT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?\d{2})?)?$/i;

/**
 * A moment in ISO 8601, in any of the forms that people write: with `Z`, with an offset, without one (UTC), or a date
 * alone (midnight UTC). Gives the one form that we keep, whose text order is its order, or undefined; so a moment that
 * lies outside the years 0000 to 9999 in UTC is none.
 */
export const parseMoment = (text: string): string | undefined => {
  const match = MOMENT.exec(text);
  if (match === null) return undefined;
  const [, date, time = '00:00', zone = 'Z'] = match;
  const milliseconds = Date.parse(
    `${date}T${time}${zone.replace(/^([+-]\d{2})(\d{2})$/, '$1:$2').toUpperCase()}`,
  );
  if (Number.isNaN(milliseconds) || !isRealDate(date ?? '')) return undefined;
  const moment = new Date(milliseconds).toISOString();
  return /^\d{4}-/.test(moment) ? moment : undefined;
};

/**
 * The first moment of the form that we keep which is not before the text's: what we keep is dated to the millisecond, and
 * a border that names a part of one lies after it.
 */
export const parseBorder = (text: string): string | undefined => {
  const moment = parseMoment(text);
  if (moment === undefined || !/\.\d{3}\d*[1-9]/.test(text)) return moment;
  return parseMoment(new Date(Date.parse(moment) + 1).toISOString()) ?? moment;
};

/** A valid date-time (RFC 3339) in the form that we keep, which most of them already have. */
export const keptForm = (dateTime: string): string =>
  dateTime.length === 24 && dateTime[10] === 'T' && dateTime[23] === 'Z'
    ? dateTime
    : new Date(dateTime).toISOString();

/** `2026-02-31` is none, although some parsers make it March. */
const isRealDate = (date: string): boolean => {
  const parsed = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(date);
};
