import { rowLines, type LogRow, type RowIndex } from './logs';
import type { Line, Query, Reader, Value } from './projector';

/** The fields of rows that a filter may give values for. */
const FILTERED = ['entity_type', 'entity_id', 'actor_id', 'operation', 'trace_id', 'source'] as const;

/** Queries about a tenant's log. Rows must be equal to what is given. */
export type RowFilter = Readonly<Partial<Record<(typeof FILTERED)[number], string | undefined>>>;

/** Named as in the queries over HTTP. */
export interface LogFilter extends RowFilter {
  /** Rows from this moment on. */
  readonly start_date?: string | undefined;
  /** Rows before this moment. */
  readonly end_date?: string | undefined;
}

export interface LogPage {
  readonly rows: readonly LogRow[];
  /** The number of matches on all pages. Undefined: the filter's rows are not numbered (`isNumbered`). */
  readonly total?: number;
  /** The next page starts after this row. Undefined: this is the last page. */
  readonly last?: LogRow;
}

export interface LogQuery {
  readonly filter: LogFilter;
  /** Only rows older than this one, which need not match. */
  readonly olderThan?: Pick<LogRow, 'number'> | undefined;
  readonly page: number;
  readonly size: number;
}

const givenBy = (filter: RowFilter) => FILTERED.filter((field) => filter[field] !== undefined);

interface RowLine extends Line {
  readonly number: (typeof rowLines)[RowIndex]['number'];
  /** It has only rows that match. */
  readonly isExact: boolean;
}

/** The line that most likely has the fewest rows that do not match. */
const lineOf = (filter: RowFilter): RowLine => {
  const given = givenBy(filter);
  for (const [index, { equal, number }] of Object.entries(rowLines)) {
    const values = equal.flatMap((field) => filter[field] ?? []);
    if (values.length === equal.length)
      return { index, equal: values, number, isExact: values.length === given.length };
  }
  throw new Error('Every row is in the line by_number.');
};

/**
 * Whether the rows of a filter, apart from its dates, are a line. If not, there are no totals, and each page starts after
 * the last row of the one before.
 */
export const isNumbered = (filter: RowFilter): boolean => lineOf(filter).isExact;

/** So many rows are looked at in each step of a search, for all values together. */
const SEARCHED_AT_ONCE = 256;

/** A value is after the row with the number `low`, and not after those beyond `high`. */
interface Search {
  readonly value: Value;
  low: number;
  high: number;
}

const numbersToLookAt = (searches: readonly Search[]): readonly number[] => {
  const fanOut = Math.ceil(SEARCHED_AT_ONCE / searches.length);
  const numbers = new Set<number>();
  for (const { low, high } of searches) {
    const step = Math.ceil((high - low) / (fanOut + 1));
    for (let at = low + step; at <= high; at += step) numbers.add(at);
  }
  return [...numbers];
};

/**
 * How many rows of a line that has so many have less than each of these values in the field that never decreases there.
 * All are searched for by number together.
 */
const countBefore = async (
  values: readonly Value[],
  count: number,
  rowsAt: (numbers: readonly number[]) => Promise<readonly LogRow[]>,
  of: RowLine,
): Promise<readonly number[]> => {
  const field = of.number === 'number' ? 'created_at' : 'number';
  const narrow = (search: Search, row: LogRow): void => {
    const at = row[of.number] as number;
    if (row[field] < search.value) search.low = Math.max(search.low, at);
    else search.high = Math.min(search.high, at - 1);
  };
  const searches = values.map((value): Search => ({ value, low: 0, high: count }));
  for (;;) {
    const open = searches.filter(({ low, high }) => low < high);
    if (open.length === 0) return searches.map(({ low }) => low);
    const rows = await rowsAt(numbersToLookAt(open));
    for (const search of open) for (const row of rows) narrow(search, row);
  }
};

/** The rows of a tenant in a line that has so many. */
const rowsIn = (reader: Reader, tenantId: string, of: RowLine, count = 0) => {
  const { index, equal, number, isExact } = of;
  const line = { index, equal };
  const rowsAt = async (numbers: readonly number[]) =>
    (await reader.at(tenantId, 'log_rows', line, numbers)) as unknown as readonly LogRow[];
  return {
    number,
    isExact,
    count,
    rowsAt,
    /** Counts before those values that are given. */
    countsBefore: async (values: readonly (Value | undefined)[]) => {
      const given = values.filter((value) => value !== undefined);
      if (given.length === 0) return values.map(() => undefined);
      const counts = await countBefore(given, count, rowsAt, of);
      return values.map((value) => (value === undefined ? undefined : counts[given.indexOf(value)]));
    },
    newest: async (range: Pick<Query, 'from' | 'upTo' | 'limit'>) => {
      const query = { ...line, descending: true, ...range };
      return (await reader.find(tenantId, 'log_rows', query)) as unknown as readonly LogRow[];
    },
  };
};

type Rows = ReturnType<typeof rowsIn>;

/** Those in the line of a filter. */
const rowsOf = async (reader: Reader, tenantId: string, filter: RowFilter) => {
  const lines = [lineOf(filter), lineOf({})] as const;
  const asked = lines.map(({ index, equal }) => ({ tenantId, collection: 'log_rows', index, equal }));
  const [end, endOfAll] = await reader.lastOf(asked);
  const rows = rowsIn(reader, tenantId, lines[0], end?.number ?? 0);
  const all = rowsIn(reader, tenantId, lines[1], endOfAll?.number ?? 0);
  return {
    rows,
    /** How many of them come before each of these moments, and before a row of the tenant, as far as they are given. */
    countsBefore: async (moments: readonly (string | undefined)[], row?: Pick<LogRow, 'number'>) => {
      const dates = await all.countsBefore(moments);
      const amongAll = row === undefined ? dates : [...dates, row.number - 1];
      if (rows.number === 'number') return amongAll;
      return rows.countsBefore(amongAll.map((count) => (count === undefined ? undefined : count + 1)));
    },
  };
};

/** Which numbers a query is about: those after `before`, up to `last`. Its pages start at `top`. */
interface Span {
  readonly before: number;
  readonly last: number;
  readonly top: number;
}

const pageByNumber = async ({ rowsAt }: Rows, { before, last, top }: Span, { page, size }: LogQuery) => {
  const total = Math.max(0, last - before);
  const upTo = top - (page - 1) * size;
  if (upTo <= before) return { rows: [], total };
  const from = Math.max(before + 1, upTo - size + 1);
  const rows = await rowsAt(Array.from({ length: upTo - from + 1 }, (_, i) => upTo - i));
  const end = rows.at(-1);
  return { rows, total, ...(from > before + 1 && end !== undefined ? { last: end } : {}) };
};

/** Rows that are looked at for one page. So a page may be short, or even empty, although there are more. */
const MAX_LOOKED_AT = 1_000;

/** Whether a row matches a filter apart from its dates, which are ranges of numbers. */
const matches = (filter: RowFilter, row: LogRow): boolean =>
  givenBy(filter).every((field) => row[field] === filter[field]);

/** Looks at no more rows than a page has if they all match, otherwise at more and more. */
const pageByLooking = async ({ newest, number }: Rows, { before, top }: Span, { filter, size }: LogQuery) => {
  const found: LogRow[] = [];
  let upTo = top;
  for (let limit = size + 1, left = MAX_LOOKED_AT; ; limit = Math.min(4 * limit, left)) {
    const rows = await newest({ from: before + 1, upTo, limit });
    const end = rows.at(-1);
    const isAll = rows.length < limit;
    for (const row of rows) {
      if (matches(filter, row)) found.push(row);
      if (found.length === size) return { rows: found, ...(isAll && row === end ? {} : { last: row }) };
    }
    left -= rows.length;
    if (isAll || end === undefined) return { rows: found };
    if (left <= 0) return { rows: found, last: end };
    upTo = (end[number] ?? 0) - 1;
  }
};

/** A page of the log, newest first by position in the log. */
export const findLogs = async (reader: Reader, tenantId: string, query: LogQuery): Promise<LogPage> => {
  const { filter, olderThan } = query;
  const { rows, countsBefore } = await rowsOf(reader, tenantId, filter);
  const counts = await countsBefore([filter.start_date, filter.end_date], olderThan);
  const [before = 0, last = rows.count, top = last] = counts;
  const span: Span = { before, last, top: Math.min(top, last) };
  return rows.isExact ? pageByNumber(rows, span, query) : pageByLooking(rows, span, query);
};

/** How many rows of a numbered filter there are from each moment to the next one. */
export const countLogs = async (
  reader: Reader,
  tenantId: string,
  filter: RowFilter,
  moments: readonly string[],
): Promise<readonly number[]> => {
  const { countsBefore } = await rowsOf(reader, tenantId, filter);
  const counts = await countsBefore(moments);
  return counts.slice(1).map((count = 0, i) => count - (counts[i] ?? 0));
};
