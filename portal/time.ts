export const timeStyles = ['relative', 'local', 'utc'] as const;
export type TimeStyle = (typeof timeStyles)[number];

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', 1_000],
];

const relativeTo = (now: number, moment: string): string => {
  const ms = Date.parse(moment) - now;
  // Clocks differ a little: what was just recorded is not in the future.
  if (ms > 0 && ms < MINUTE_MS) return 'now';
  const [unit, size] = UNITS.find(([, one]) => Math.abs(ms) >= one) ?? ['second', 1_000];
  return relative.format(Math.trunc(ms / size), unit);
};

export const utcText = (moment: string): string => moment.replace('T', ' ').replace('Z', ' UTC');

/** What is not a time, as an address may have, is left as it is. */
export const timeText = (moment: string, style: TimeStyle, now: number): string => {
  if (Number.isNaN(Date.parse(moment))) return moment;
  switch (style) {
    case 'relative':
      return relativeTo(now, moment);
    case 'local':
      return local.format(new Date(moment));
    case 'utc':
      return utcText(moment.replace(/\.\d+/, ''));
  }
};

/** The zone of what is read and typed. */
export const zoneOf = (style: TimeStyle): string =>
  style === 'utc' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone;

const offsetMs = (date: Date, style: TimeStyle): number =>
  style === 'utc' ? 0 : date.getTimezoneOffset() * MINUTE_MS;

/** As an input for a date and time shows it. */
export const inputText = (moment: string, style: TimeStyle): string => {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - offsetMs(date, style)).toISOString().slice(0, 'yyyy-mm-ddThh:mm'.length);
};

/** A date, or a date and time, means that of the viewer unless it has an offset. Undefined: it is none. */
export const momentFrom = (text: string, style: TimeStyle): string | undefined => {
  const [, date, time, zone] =
    /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(text) ?? [];
  if (date === undefined) return undefined;
  const ms = Date.parse(`${date}T${time ?? '00:00'}${zone ?? (style === 'utc' ? 'Z' : '')}`);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
};

/** The day of the viewer that a moment is in. */
export const dayOf = (moment: string, style: TimeStyle): string => inputText(moment, style).slice(0, 10);
