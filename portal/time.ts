import type { TimeStyle } from './place.js';

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
];

const relativeTo = (now: number, moment: string): string => {
  const ms = Date.parse(moment) - now;
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
      return utcText(moment);
  }
};

const AGO = /^([0-9]{1,4})\s*(m|h|d)$/i;
const MS = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A moment as people write it: `24h` ago, a date, or a date and time. Undefined: it is not one. */
export const momentFrom = (text: string): string | undefined => {
  const [, amount, unit] = AGO.exec(text) ?? [];
  if (amount !== undefined)
    return new Date(
      Date.now() - Number(amount) * MS[(unit ?? 'm').toLowerCase() as keyof typeof MS],
    ).toISOString();
  const isDateAlone = /^\d{4}-\d{2}-\d{2}$/.test(text);
  if (!isDateAlone && !/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}/.test(text)) return undefined;
  const ms = Date.parse(
    isDateAlone || /(?:Z|[+-]\d{2}:?\d{2})$/i.test(text)
      ? text.replace(' ', 'T')
      : `${text.replace(' ', 'T')}Z`,
  );
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
};
