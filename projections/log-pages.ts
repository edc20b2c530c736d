import { headOf, type EntityHead, type LogRow } from './logs';
import type { LinePart, Reader } from './projector';

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

/** The rows that a filter selects but for its dates, numbered from 1 on. */
interface LogLine {
  readonly last: number;
  /** Oldest first. */
  readonly range: (from: number, upTo: number) => Promise<readonly LogRow[]>;
  /** How many of its rows come before a moment, or before a position. */
  readonly countBefore: (border: 'created_at' | 'position', value: string) => Promise<number>;
}

type Part = Required<Omit<LinePart, 'border'>>;

const partsOfTypedEntity = async (
  reader: Reader,
  tenantId: string,
  entityId: string,
  entityType: string,
): Promise<readonly Part[]> => {
  const [head, typed] = (await Promise.all([
    reader.get(tenantId, 'entities', entityId),
    reader.get(tenantId, 'heads', headOf.typedEntity(entityType, entityId)),
  ])) as readonly [EntityHead | undefined, { count: number } | undefined];
  const run = head?.type === entityType ? (head.alone ?? head.count) : 0;
  return [
    { line: 'by_entity', equal: [entityId], first: 1, last: run },
    { line: 'by_typed_entity', equal: [entityId, entityType], first: run + 1, last: typed?.count ?? run },
  ];
};

/** The parts of declared lines that a filter's rows are numbered along. Each begins where the one before it ends. */
const partsOf = async (
  reader: Reader,
  tenantId: string,
  { entityType, entityId }: LogFilter,
): Promise<readonly Part[]> => {
  const whole = async (
    line: string,
    [collection, key]: readonly [string, string],
    ...equal: readonly string[]
  ): Promise<readonly Part[]> => {
    const head = (await reader.get(tenantId, collection, key)) as { count: number } | undefined;
    return [{ line, equal, first: 1, last: head?.count ?? 0 }];
  };
  if (entityId !== undefined && entityType !== undefined)
    return partsOfTypedEntity(reader, tenantId, entityId, entityType);
  if (entityId !== undefined) return whole('by_entity', ['entities', entityId], entityId);
  if (entityType !== undefined) return whole('by_type', ['heads', headOf.type(entityType)], entityType);
  return whole('by_number', ['heads', headOf.tenant]);
};

/** The number of a row in the line that a filter follows. */
export const numberIn = ({ entityType, entityId }: LogFilter, row: LogRow): number => {
  if (entityId === undefined) return entityType === undefined ? row.number : row.type_number;
  return entityType === undefined ? row.entity_number : (row.typed_entity_number ?? row.entity_number);
};

const lineOf = async (reader: Reader, tenantId: string, filter: LogFilter): Promise<LogLine> => {
  const parts = (await partsOf(reader, tenantId, filter)).filter(({ first, last }) => first <= last);
  return {
    last: parts.at(-1)?.last ?? 0,
    range: async (from, upTo) => {
      const found = parts.map(async ({ line: index, equal, first, last }) => {
        const [low, high] = [Math.max(from, first), Math.min(upTo, last)];
        if (low > high) return [];
        return reader.find(tenantId, 'rows', { index, equal, from: low, upTo: high, limit: high - low + 1 });
      });
      return (await Promise.all(found)).flat() as unknown as readonly LogRow[];
    },
    countBefore: async (border, value) => {
      let count = 0;
      for (const part of parts) {
        count = await reader.countBefore(tenantId, 'rows', { ...part, border }, value);
        if (count < part.last) break;
      }
      return count;
    },
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

/** How many rows of a line come before a position. The number that its row is believed to have is looked at first. */
const countOlder = async (line: LogLine, position: string, believed: number): Promise<number> => {
  const [seen] = await line.range(believed, believed);
  return seen?.position === position ? believed - 1 : line.countBefore('position', position);
};

/** A page of the log, newest first by position in the log. */
export const findLogs = async (reader: Reader, tenantId: string, question: LogQuestion): Promise<LogPage> => {
  const { filter, olderThan, olderNumber = 0, page, size } = question;
  const line = await lineOf(reader, tenantId, filter);
  const { first, last } = await numbersOf(line, filter);
  const total = Math.max(0, last - first + 1);
  const older = olderThan === undefined ? last : await countOlder(line, olderThan, olderNumber);
  const top = Math.min(last, older) - (page - 1) * size;
  if (top < first) return { rows: [], total, more: false };
  const bottom = Math.max(first, top - size + 1);
  return { rows: (await line.range(bottom, top)).toReversed(), total, more: bottom > first };
};

/**
 * The rows after one, oldest first: a walk through the log that goes on where it stopped, also in another generation, in
 * which that row may have another number or be missing.
 */
export const walkLogs = async (
  reader: Reader,
  tenantId: string,
  filter: LogFilter,
  limit: number,
  after?: LogRow,
): Promise<readonly LogRow[]> => {
  const line = await lineOf(reader, tenantId, filter);
  const from =
    after === undefined
      ? (await numbersOf(line, filter)).first
      : (await countOlder(line, after.position, numberIn(filter, after))) + 1;
  const rows = await line.range(from, from + limit);
  const { end } = filter;
  return rows
    .filter((row) => after === undefined || row.position > after.position)
    .filter((row) => end === undefined || row.created_at < end)
    .slice(0, limit);
};
