export const timeStyles = ['local', 'utc'] as const;
export type TimeStyle = (typeof timeStyles)[number];

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', 1_000],
];

/** `2 days ago`, `in 3 hours`. */
export const relativeText = (moment: string, now: number): string => {
  const ms = Date.parse(moment) - now;
  // Clocks differ a little: what was just recorded is not in the future.
  if (ms > 0 && ms < MINUTE_MS) return 'now';
  const [unit, size] = UNITS.find(([, one]) => Math.abs(ms) >= one) ?? ['second', 1_000];
  return relative.format(Math.trunc(ms / size), unit);
};

const day = { day: 'numeric', month: 'short' } as const;
const minute = { hour: '2-digit', minute: '2-digit' } as const;
const second = { ...minute, second: '2-digit' } as const;

/** How much of a moment is written. A month has a name, so that nobody takes it for a day. */
const PARTS = {
  month: { month: 'short', year: 'numeric' },
  day,
  year: { ...day, year: 'numeric' },
  weekday: { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' },
  hours: minute,
  clock: { ...second, fractionalSecondDigits: 3 },
  minute: { ...day, year: 'numeric', ...minute },
  exact: { ...day, year: 'numeric', ...second, fractionalSecondDigits: 3 },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;
export type Precision = keyof typeof PARTS;

const formats = new Map<string, Intl.DateTimeFormat>();

const formatOf = (precision: Precision, style: TimeStyle): Intl.DateTimeFormat => {
  const key = `${precision} ${style}`;
  const zone = style === 'utc' ? { timeZone: 'UTC' } : {};
  const format = formats.get(key) ?? new Intl.DateTimeFormat('en-GB', { ...PARTS[precision], ...zone });
  formats.set(key, format);
  return format;
};

/** What is not a time, as an address may have, is left as it is. */
export const timeText = (moment: string, style: TimeStyle, precision: Precision = 'minute'): string => {
  const date = new Date(moment);
  return Number.isNaN(date.getTime()) ? moment : formatOf(precision, style).format(date);
};

/** The day alone: `24 Nov`, with its year if that is not the present one. */
export const shortDay = (moment: string, style: TimeStyle): string => {
  const isThisYear = dayOf(moment, style).slice(0, 4) === dayOf(new Date().toISOString(), style).slice(0, 4);
  return timeText(moment, style, isThisYear ? 'day' : 'year');
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
