import { call } from './api.js';
import { queryOf, type Filters } from './filters.js';
import { DAY_MS, dayOf, HOUR_MS, momentFrom, type TimeStyle } from './time.js';
import type { LogCounts, LogPage } from './wire.js';

/** How many rows there are in each interval of a time. */

export interface Bar {
  readonly start: string;
  readonly end: string;
  readonly count: number;
}

/** The service counts so many intervals at a time. */
const MAX_INTERVALS = 119;
const MAX_REQUESTS = 12;

/** The longest time that each unit is for, and what is counted. */
const UNITS = [
  { unit: 'minute', interval: 'minute', ms: 60_000, upToMs: 2 * HOUR_MS },
  { unit: 'hour', interval: 'hour', ms: HOUR_MS, upToMs: 4 * DAY_MS },
  { unit: 'day', interval: 'day', ms: DAY_MS, upToMs: 100 * DAY_MS },
  { unit: 'month', interval: 'day', ms: DAY_MS, upToMs: Infinity },
] as const;

const iso = (ms: number): string => new Date(ms).toISOString();

/** Where the log of these filters begins. */
const oldest = async (chosen: Filters, rowCount: number, abort: AbortSignal): Promise<string | undefined> => {
  const query = queryOf(chosen, { size: '1', page: String(rowCount) });
  const page = await call<LogPage>(`/logs?${query}`, { signal: abort });
  return page.ok ? page.value.data[0]?.created_at : undefined;
};

/** Adds up what is in the same day or month of the viewer. */
const grouped = (bars: readonly Bar[], unit: string, style: TimeStyle): readonly Bar[] => {
  if (unit !== 'day' && unit !== 'month') return bars;
  const { length } = unit === 'day' ? 'yyyy-mm-dd' : 'yyyy-mm';
  const groups = Map.groupBy(bars, ({ start }) => dayOf(start, style).slice(0, length));
  return [...groups.values()].map((group) => ({
    start: group[0]?.start ?? '',
    end: group.at(-1)?.end ?? '',
    count: group.reduce((sum, { count }) => sum + count, 0),
  }));
};

/** Where the next interval begins: a day at the midnight of the viewer. */
const nextAfter = (at: number, ms: number, style: TimeStyle): number => {
  if (ms < DAY_MS) return Math.floor(at / ms) * ms + ms;
  const tomorrow = iso(Date.parse(dayOf(iso(at), style)) + DAY_MS);
  return Date.parse(momentFrom(dayOf(tomorrow, 'utc'), style) ?? '');
};

/** Where one request ends and the next begins: after a part of an interval, or a day of another length. */
const cutsOf = (first: number, upTo: number, ms: number, style: TimeStyle): readonly number[] => {
  const cuts = [first];
  for (let at = first, next = 0; at < upTo; at = next) {
    next = nextAfter(at, ms, style);
    const isFull = next - (cuts.at(-1) ?? first) >= MAX_INTERVALS * ms;
    if (next < upTo && (isFull || next - at !== ms)) cuts.push(next);
  }
  return cuts;
};

const countBetween = async (
  chosen: Filters,
  interval: string,
  [from, upTo]: readonly [string, string],
  abort: AbortSignal,
): Promise<readonly Bar[]> => {
  const query = queryOf({ ...chosen, start_date: from, end_date: upTo }, { interval });
  const found = await call<LogCounts>(`/logs/counts?${query}`, { signal: abort });
  const data = found.ok ? found.value.data : [];
  const endOf = (i: number): string => data[i + 1]?.start_date ?? upTo;
  return data.map(({ start_date: start, count }, i) => ({ start, count, end: endOf(i) }));
};

export interface Chart {
  readonly bars: readonly Bar[];
  readonly unit: (typeof UNITS)[number]['unit'];
  /** So many rows were counted. */
  readonly total: number;
}

/** Counts the rows of the same time as the list: from its first row, if no time is chosen. */
export const loadChart = async (
  chosen: Filters,
  style: TimeStyle,
  rowCount: number,
  abort: AbortSignal,
): Promise<Chart | undefined> => {
  const start = chosen.start_date ?? (await oldest(chosen, rowCount, abort));
  const upTo = chosen.end_date === undefined ? Date.now() : Date.parse(chosen.end_date);
  if (start === undefined || !(Date.parse(start) < upTo)) return undefined;
  const { unit, interval, ms } = UNITS.find(({ upToMs }) => upTo - Date.parse(start) <= upToMs) ?? UNITS[3];
  const first = Math.max(Date.parse(start), upTo - MAX_REQUESTS * MAX_INTERVALS * ms);
  const cuts = cutsOf(first, upTo, ms, style);
  const counts = await Promise.all(
    cuts.map((at, i) => countBetween(chosen, interval, [iso(at), iso(cuts[i + 1] ?? upTo)], abort)),
  );
  // What comes after these rows is added to the last bar.
  return { bars: grouped(counts.flat(), unit, style), unit, total: rowCount };
};
