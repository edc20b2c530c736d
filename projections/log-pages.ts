import { TENANT, type LogRow } from './logs';
import type { Reader, Selection } from './projector';

/** The questions about a tenant's log. */
export interface LogFilter {
  readonly entityType?: string;
  readonly entityId?: string;
  /** Rows from this moment on. */
  readonly start?: string;
  /** Rows before this moment. */
  readonly end?: string;
}

export interface LogPage {
  readonly rows: readonly LogRow[];
  /** Of the whole filter. */
  readonly total: number;
  /** Older rows follow. */
  readonly more: boolean;
}

export interface LogQuestion {
  readonly filter: LogFilter;
  /** Only rows older than the row at this log position. */
  readonly olderThan?: string;
  /** The number that this row had when it was seen (`numberIn`). It spares a search; if it is wrong, nothing else. */
  readonly olderNumber?: number;
  readonly page: number;
  readonly size: number;
}

/** A numbered line of rows: all of a tenant's, or those of one entity type. */
interface LogLine {
  readonly last: number;
  readonly range: (from: number, upTo: number) => Promise<readonly LogRow[]>;
  /** How many of its rows come before a moment, or before a position. */
  readonly countBefore: (border: 'created_at' | 'position', value: string) => Promise<number>;
}

const lineOf = async (reader: Reader, tenantId: string, entityType: string | undefined): Promise<LogLine> => {
  const selection =
    entityType === undefined ? { index: 'by_number' } : { index: 'by_type', equal: [entityType] };
  const head =
    entityType === undefined
      ? await reader.get(tenantId, 'heads', TENANT)
      : await reader.get(tenantId, 'types', entityType);
  const last = (head as { count: number } | undefined)?.count ?? 0;
  return {
    last,
    range: async (from, upTo) =>
      (await reader.find(tenantId, 'rows', {
        ...selection,
        from,
        upTo,
        descending: true,
        limit: upTo - from + 1,
      })) as unknown as LogRow[],
    countBefore: (border, value) =>
      reader.countBefore(tenantId, 'rows', { ...selection, last, border }, value),
  };
};

/** The numbers of a line that a filter of dates selects, first and last. */
const numbersOf = async (
  line: LogLine,
  { start, end }: LogFilter,
): Promise<{ first: number; last: number }> => ({
  first: start === undefined ? 1 : (await line.countBefore('created_at', start)) + 1,
  last: end === undefined ? line.last : await line.countBefore('created_at', end),
});

/** The last number of a line whose row is older than the one that a question names. */
const olderLimit = async (
  line: LogLine,
  last: number,
  { olderThan, olderNumber = 0 }: LogQuestion,
): Promise<number> => {
  if (olderThan === undefined) return last;
  const [seen] = await line.range(olderNumber, olderNumber);
  const older =
    seen?.position === olderThan ? olderNumber - 1 : await line.countBefore('position', olderThan);
  return Math.min(last, older);
};

const nothing = (total: number): LogPage => ({ rows: [], total, more: false });

const byNumber = async (reader: Reader, tenantId: string, question: LogQuestion): Promise<LogPage> => {
  const line = await lineOf(reader, tenantId, question.filter.entityType);
  const { first, last } = await numbersOf(line, question.filter);
  const total = Math.max(0, last - first + 1);
  const top = (await olderLimit(line, last, question)) - (question.page - 1) * question.size;
  if (top < first) return nothing(total);
  const bottom = Math.max(first, top - question.size + 1);
  return { rows: await line.range(bottom, top), total, more: bottom > first };
};

/** One entity's rows are counted and skipped over: it costs in proportion to that entity's own rows. */
const byEntity = async (
  reader: Reader,
  tenantId: string,
  entityId: string,
  question: LogQuestion,
): Promise<LogPage> => {
  const { filter, page, size } = question;
  const line = await lineOf(reader, tenantId, undefined);
  const { first, last } = await numbersOf(line, filter);
  const selection = (upTo: number) => ({
    index: 'by_entity',
    equal: [entityId],
    from: first,
    upTo,
    ...(filter.entityType === undefined ? {} : { also: { field: 'entity_type', value: filter.entityType } }),
  });
  const total = await reader.count(tenantId, 'rows', selection(last));
  const below = selection(await olderLimit(line, last, question));
  const skip = (page - 1) * size;
  if (skip >= total) return nothing(total);
  const found = await reader.find(tenantId, 'rows', { ...below, descending: true, skip, limit: size + 1 });
  const rows = found as unknown as readonly LogRow[];
  return { rows: rows.slice(0, size), total, more: rows.length > size };
};

/** A page of the log, newest first by position in the log. */
export const findLogs = (reader: Reader, tenantId: string, question: LogQuestion): Promise<LogPage> =>
  question.filter.entityId === undefined
    ? byNumber(reader, tenantId, question)
    : byEntity(reader, tenantId, question.filter.entityId, question);

/** The stretch of an index that a walk follows, and the number that orders it. */
const laneOf = ({
  entityId,
  entityType,
}: LogFilter): { selection: Selection; numberOf: (row: LogRow) => number } => {
  if (entityId === undefined && entityType !== undefined)
    return { selection: { index: 'by_type', equal: [entityType] }, numberOf: (row) => row.type_number };
  const numberOf = (row: LogRow): number => row.number;
  if (entityId === undefined) return { selection: { index: 'by_number' }, numberOf };
  const also = entityType === undefined ? {} : { also: { field: 'entity_type', value: entityType } };
  return { selection: { index: 'by_entity', equal: [entityId], ...also }, numberOf };
};

/** The number of a row in the line that a filter follows. */
export const numberIn = (filter: LogFilter, row: LogRow): number => laneOf(filter).numberOf(row);

/** The rows after one, oldest first: a walk through the log that goes on where it stopped. */
export const walkLogs = async (
  reader: Reader,
  tenantId: string,
  filter: LogFilter,
  limit: number,
  after?: LogRow,
): Promise<readonly LogRow[]> => {
  const { selection, numberOf } = laneOf(filter);
  const line = await lineOf(reader, tenantId, filter.entityId === undefined ? filter.entityType : undefined);
  const from = after === undefined ? (await numbersOf(line, filter)).first : numberOf(after) + 1;
  const rows = await reader.find(tenantId, 'rows', { ...selection, from, upTo: line.last, limit });
  const { end } = filter;
  return (rows as unknown as readonly LogRow[]).filter((row) => end === undefined || row.created_at < end);
};
