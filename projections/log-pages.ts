import { headOf, type LogRow } from './logs';
import type { Query, Reader, Value } from './projector';

/** Queries about a tenant's log. Rows are numbered for every combination of entity type and id. */
export interface NumberedLogFilter {
  readonly entityType?: string | undefined;
  readonly entityId?: string | undefined;
}

export interface LogFilter extends NumberedLogFilter {
  /** Rows from this moment on. */
  readonly start?: string | undefined;
  /** Rows before this moment. */
  readonly end?: string | undefined;
  readonly actorId?: string | undefined;
  readonly operation?: string | undefined;
  readonly traceId?: string | undefined;
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

/** If not, there are no totals, and each page starts after the last row of the one before. */
export const isNumbered = ({ actorId, operation, traceId }: LogFilter): boolean =>
  actorId === undefined && operation === undefined && traceId === undefined;

/** An index, and the number by which it orders rows. */
interface Order {
  readonly index: string;
  readonly equal: readonly string[];
  readonly number: 'number' | 'type_number' | 'entity_number' | 'typed_entity_number';
}

const BY_NUMBER: Order = { index: 'by_number', equal: [], number: 'number' };

const numberedOrder = ({ entityType, entityId }: NumberedLogFilter): Order => {
  if (entityId !== undefined && entityType !== undefined)
    return { index: 'by_typed_entity', equal: [entityId, entityType], number: 'typed_entity_number' };
  if (entityId !== undefined) return { index: 'by_entity', equal: [entityId], number: 'entity_number' };
  if (entityType !== undefined) return { index: 'by_type', equal: [entityType], number: 'type_number' };
  return BY_NUMBER;
};

/** The index that most likely has the fewest rows that do not match. */
const orderOf = (filter: LogFilter): Order => {
  const { entityId, actorId, operation, traceId } = filter;
  if (traceId !== undefined) return { index: 'by_trace', equal: [traceId], number: 'number' };
  if (entityId !== undefined) return numberedOrder(filter);
  if (actorId !== undefined) return { index: 'by_actor', equal: [actorId], number: 'number' };
  if (operation !== undefined) return { index: 'by_operation', equal: [operation], number: 'number' };
  return numberedOrder(filter);
};

/** The rows of a tenant in some order. */
const rowsIn = (reader: Reader, tenantId: string, { index, equal, number }: Order) => ({
  number,
  last: async (): Promise<number> => {
    const head = await reader.get(tenantId, 'log_heads', headOf(index, ...equal));
    return (head as { readonly count: number } | undefined)?.count ?? 0;
  },
  countsBefore: (values: readonly Value[]): Promise<readonly number[]> =>
    reader.countsBefore(tenantId, 'log_rows', { index, equal }, values),
  newest: async (range: Pick<Query, 'from' | 'upTo' | 'limit' | 'areAllThere'>) => {
    const query = { index, equal, descending: true, ...range };
    return (await reader.find(tenantId, 'log_rows', query)) as unknown as readonly LogRow[];
  },
});

type Rows = ReturnType<typeof rowsIn>;

/** Counts before those values that are given. */
const countsBeforeGiven = async (
  { countsBefore }: Rows,
  values: readonly (Value | undefined)[],
): Promise<readonly (number | undefined)[]> => {
  const given = values.filter((value) => value !== undefined);
  const counts = given.length === 0 ? [] : await countsBefore(given);
  return values.map((value) => (value === undefined ? undefined : counts[given.indexOf(value)]));
};

/** Which numbers a query is about: those after `before`, up to `last`. Its pages start at `top`. */
interface Span {
  readonly before: number;
  readonly last: number;
  readonly top: number;
}

const spanOf = async (
  reader: Reader,
  tenantId: string,
  rows: Rows,
  { filter, olderThan }: LogQuery,
): Promise<Span> => {
  const [end, dates] = await Promise.all([
    isNumbered(filter) ? rows.last() : Number.MAX_SAFE_INTEGER,
    countsBeforeGiven(rowsIn(reader, tenantId, BY_NUMBER), [filter.start, filter.end]),
  ]);
  const amongAll = [...dates, olderThan === undefined ? undefined : olderThan.number - 1];
  const following = amongAll.map((count) => (count === undefined ? undefined : count + 1));
  const counts = rows.number === 'number' ? amongAll : await countsBeforeGiven(rows, following);
  const [before = 0, last = end, top = last] = counts;
  return { before, last, top: Math.min(top, last) };
};

const pageByNumber = async (
  { newest }: Rows,
  { before, last, top }: Span,
  { page, size }: LogQuery,
): Promise<LogPage> => {
  const total = Math.max(0, last - before);
  const upTo = top - (page - 1) * size;
  if (upTo <= before) return { rows: [], total };
  const from = Math.max(before + 1, upTo - size + 1);
  const rows = await newest({ from, upTo, limit: upTo - from + 1, areAllThere: true });
  const end = rows.at(-1);
  return { rows, total, ...(from > before + 1 && end !== undefined ? { last: end } : {}) };
};

/** Rows that are looked at for one page. So a page may be short, or even empty, although there are more. */
const MAX_LOOKED_AT = 1_000;

/** Whether a row matches a filter apart from its dates and its trace, which are ranges of an index. */
const matches = ({ entityType, entityId, actorId, operation }: LogFilter, row: LogRow): boolean =>
  (entityType === undefined || row.entity_type === entityType) &&
  (entityId === undefined || row.entity_id === entityId) &&
  (actorId === undefined || row.actor_id === actorId) &&
  (operation === undefined || row.operation === operation);

/** Looks at no more rows than a page has if they all match, otherwise at more and more. */
const pageByLooking = async (
  { newest, number }: Rows,
  { before, top }: Span,
  { filter, size }: LogQuery,
): Promise<LogPage> => {
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
    upTo = end[number] - 1;
  }
};

/** A page of the log, newest first by position in the log. */
export const findLogs = async (reader: Reader, tenantId: string, query: LogQuery): Promise<LogPage> => {
  const rows = rowsIn(reader, tenantId, orderOf(query.filter));
  const span = await spanOf(reader, tenantId, rows, query);
  return isNumbered(query.filter) ? pageByNumber(rows, span, query) : pageByLooking(rows, span, query);
};

/** How many rows there are from each moment to the next one. */
export const countLogs = async (
  reader: Reader,
  tenantId: string,
  filter: NumberedLogFilter,
  moments: readonly string[],
): Promise<readonly number[]> => {
  const rows = rowsIn(reader, tenantId, numberedOrder(filter));
  const amongAll = await rowsIn(reader, tenantId, BY_NUMBER).countsBefore(moments);
  const counts =
    rows.number === 'number' ? amongAll : await rows.countsBefore(amongAll.map((count) => count + 1));
  return counts.slice(1).map((count, i) => count - (counts[i] ?? 0));
};
