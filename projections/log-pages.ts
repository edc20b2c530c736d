import { headOf, type EntityHead, type LogRow } from './logs';
import type { SequencePart, Reader } from './projector';

/** Queries about a tenant's log. */
interface SpecifiedLogFilter {
  readonly entityType?: string | undefined;
  readonly entityId?: string | undefined;
  /** Rows from this moment on. */
  readonly start?: string | undefined;
  /** Rows before this moment. */
  readonly end?: string | undefined;
}

/** Includes filters beyond the specification. */
export interface LogFilter extends SpecifiedLogFilter {
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

/** A row that a page showed before, possibly in another generation. */
export interface SeenRow {
  readonly id: string;
  /** The number that it had in the sequence of the filter (`numberIn`). */
  readonly number: number;
}

export interface LogQuery {
  readonly filter: LogFilter;
  /** Only rows older than this one. */
  readonly olderThan?: SeenRow;
  readonly page: number;
  readonly size: number;
}

/** The rows that match a filter apart from its dates, numbered from 1. */
interface LogSequence {
  readonly last: number;
  /** Oldest first. */
  readonly range: (from: number, upTo: number) => Promise<readonly LogRow[]>;
  /** How many of its rows come before a moment. */
  readonly countBefore: (moment: string) => Promise<number>;
  /** The same for many moments. */
  readonly countsBefore: (moments: readonly string[]) => Promise<readonly number[]>;
}

type Part = Required<Omit<SequencePart, 'monotonicField'>>;

/**
 * Rows are numbered by type, by entity, by actor and by operation. For any other combination of filters, the rows of
 * one of them are scanned for the rest, so there are no totals, and each page starts after the last row of the one
 * before.
 */
export const isNumbered = ({ entityType, entityId, actorId, operation, traceId }: LogFilter): boolean => {
  if (traceId !== undefined) return false;
  const extra = [actorId, operation].filter((value) => value !== undefined).length;
  return extra === 0 || (extra === 1 && entityType === undefined && entityId === undefined);
};

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
  // Without another type there is no head of this one. If there is one, it was written after the entity's was read.
  const hasOneType = head === undefined || (head.type === entityType && head.alone === undefined);
  const last = hasOneType ? run : (typed?.count ?? run);
  return [
    { sequence: 'by_entity', equal: [entityId], first: 1, last: run },
    { sequence: 'by_typed_entity', equal: [entityId, entityType], first: run + 1, last },
  ];
};

/** The parts of declared sequences that number a filter's rows. Each starts where the one before ends. */
const partsOf = async (
  reader: Reader,
  tenantId: string,
  { entityType, entityId, actorId, operation }: LogFilter,
): Promise<readonly Part[]> => {
  const whole = async (
    sequence: string,
    [collection, key]: readonly [string, string],
    ...equal: readonly string[]
  ): Promise<readonly Part[]> => {
    const head = (await reader.get(tenantId, collection, key)) as { count: number } | undefined;
    return [{ sequence, equal, first: 1, last: head?.count ?? 0 }];
  };
  if (entityId !== undefined && entityType !== undefined)
    return partsOfTypedEntity(reader, tenantId, entityId, entityType);
  if (entityId !== undefined) return whole('by_entity', ['entities', entityId], entityId);
  if (actorId !== undefined) return whole('by_actor', ['heads', headOf.actor(actorId)], actorId);
  if (entityType !== undefined) return whole('by_type', ['heads', headOf.type(entityType)], entityType);
  if (operation !== undefined)
    return whole('by_operation', ['heads', headOf.operation(operation)], operation);
  return whole('by_number', ['heads', headOf.tenant]);
};

/** The number of a row in the sequence that a filter follows. */
export const numberIn = (
  { entityType, entityId, actorId, operation, traceId }: LogFilter,
  row: LogRow,
): number => {
  if (traceId !== undefined) return row.number;
  if (entityId !== undefined)
    return entityType === undefined ? row.entity_number : (row.typed_entity_number ?? row.entity_number);
  if (actorId !== undefined) return row.actor_number ?? 0;
  if (entityType !== undefined) return row.type_number;
  return operation === undefined ? row.number : row.operation_number;
};

const sequenceOf = async (reader: Reader, tenantId: string, filter: LogFilter): Promise<LogSequence> => {
  const parts = (await partsOf(reader, tenantId, filter)).filter(({ first, last }) => first <= last);
  /** From the number reached in each part: the first part that does not end before the moment counts. */
  const reached = (counts: readonly number[]): number => {
    const at = counts.findIndex((count, i) => count < (parts[i] as Part).last);
    return counts.at(at) ?? 0;
  };
  return {
    last: parts.at(-1)?.last ?? 0,
    range: async (from, upTo) => {
      const found = parts.map(async ({ sequence: index, equal, first, last }) => {
        const [low, high] = [Math.max(from, first), Math.min(upTo, last)];
        if (low > high) return [];
        const numbers = { from: low, upTo: high, limit: high - low + 1, areAllThere: true };
        return reader.find(tenantId, 'rows', { index, equal, ...numbers });
      });
      return (await Promise.all(found)).flat() as unknown as readonly LogRow[];
    },
    countBefore: async (moment) =>
      reached(
        await Promise.all(
          parts.map((part) =>
            reader.countBefore(tenantId, 'rows', { ...part, monotonicField: 'created_at' }, moment),
          ),
        ),
      ),
    countsBefore: async (moments) => {
      const bounded = parts.map((part) => ({ ...part, monotonicField: 'created_at' }));
      const counts = await reader.countsBefore(tenantId, 'rows', bounded, moments);
      return moments.map((_, i) => reached(counts.map((inPart) => inPart[i] ?? 0)));
    },
  };
};

/** The first and last number within a filter's dates, queried in parallel. */
const numbersOf = async (
  sequence: LogSequence,
  { start, end }: LogFilter,
): Promise<{ first: number; last: number }> => {
  const [before, last] = await Promise.all([
    start === undefined ? 0 : sequence.countBefore(start),
    end === undefined ? sequence.last : sequence.countBefore(end),
  ]);
  return { first: before + 1, last };
};

/**
 * How many rows of the filter's sequence come before one that was seen. In another generation it may have another number, or
 * be missing: older rows have the same numbers then, unless some of those are missing, too.
 */
const countOlder = async (
  reader: Reader,
  tenantId: string,
  filter: LogFilter,
  { id, number }: SeenRow,
): Promise<number> => {
  const row = (await reader.get(tenantId, 'rows', id)) as unknown as LogRow | undefined;
  return (row === undefined ? number : numberIn(filter, row)) - 1;
};

/** The range of numbers that a query covers, and where its page starts. */
const spanOf = async (reader: Reader, tenantId: string, sequence: LogSequence, query: LogQuery) => {
  const { filter, olderThan } = query;
  const [{ first, last }, older] = await Promise.all([
    numbersOf(sequence, filter),
    olderThan === undefined ? Infinity : countOlder(reader, tenantId, filter, olderThan),
  ]);
  return { first, last, top: Math.min(last, older) };
};

const pageByNumber = async (reader: Reader, tenantId: string, query: LogQuery): Promise<LogPage> => {
  const { filter, page, size } = query;
  const sequence = await sequenceOf(reader, tenantId, filter);
  const { first, last, top: newest } = await spanOf(reader, tenantId, sequence, query);
  const total = Math.max(0, last - first + 1);
  const top = newest - (page - 1) * size;
  if (top < first) return { rows: [], total };
  const bottom = Math.max(first, top - size + 1);
  const rows = (await sequence.range(bottom, top)).toReversed();
  const end = rows.at(-1);
  return { rows, total, ...(bottom > first && end !== undefined ? { last: end } : {}) };
};

/** Rows scanned per page. So a page may be short, or even empty, although there are more. */
const MAX_SCANNED = 1_000;
const SCAN_SIZE = 200;

/** Whether a row matches a filter apart from its dates. */
const matches = ({ entityType, entityId, actorId, operation, traceId }: LogFilter, row: LogRow): boolean =>
  (entityType === undefined || row.entity_type === entityType) &&
  (entityId === undefined || row.entity_id === entityId) &&
  (actorId === undefined || row.actor_id === actorId) &&
  (operation === undefined || row.operation === operation) &&
  (traceId === undefined || row.trace_id === traceId);

/** The newest rows from a number down, and the number to continue from. */
type Newest = (top: number) => Promise<{ readonly rows: readonly LogRow[]; readonly next: number }>;

/** A trace has few rows, found by their number among all rows. */
const ofTrace =
  (reader: Reader, tenantId: string, traceId: string, first: number): Newest =>
  async (top) => {
    const query = { index: 'by_trace', equal: [traceId], from: first, upTo: top, descending: true };
    const rows = (await reader.find(tenantId, 'rows', {
      ...query,
      limit: SCAN_SIZE,
    })) as unknown as readonly LogRow[];
    return { rows, next: rows.length < SCAN_SIZE ? 0 : (rows.at(-1)?.number ?? 1) - 1 };
  };

const ofSequence =
  ({ range }: LogSequence, first: number): Newest =>
  async (top) => {
    const bottom = Math.max(first, top - SCAN_SIZE + 1);
    return { rows: (await range(bottom, top)).toReversed(), next: bottom - 1 };
  };

const pageByScanning = async (reader: Reader, tenantId: string, query: LogQuery): Promise<LogPage> => {
  const { filter, size } = query;
  const { traceId } = filter;
  const sequence = await sequenceOf(reader, tenantId, traceId === undefined ? filter : {});
  const { first, top } = await spanOf(reader, tenantId, sequence, query);
  const newest =
    traceId === undefined ? ofSequence(sequence, first) : ofTrace(reader, tenantId, traceId, first);
  const found: LogRow[] = [];
  let seen: LogRow | undefined;
  let scanned = 0;
  for (let from = top; from >= first && scanned < MAX_SCANNED;) {
    const { rows, next } = await newest(from);
    for (const row of rows) {
      if (matches(filter, row) && found.push(row) === size) {
        const isLast = next < first && row === rows.at(-1);
        return { rows: found, ...(isLast ? {} : { last: row }) };
      }
      seen = row;
    }
    scanned += rows.length;
    if (next < first) return { rows: found };
    from = next;
  }
  return { rows: found, ...(seen === undefined ? {} : { last: seen }) };
};

/** A page of the log, newest first by position in the log. */
export const findLogs = (reader: Reader, tenantId: string, query: LogQuery): Promise<LogPage> =>
  isNumbered(query.filter) ? pageByNumber(reader, tenantId, query) : pageByScanning(reader, tenantId, query);

/** How many rows of a type, or of all types, there are from each moment to the next one. */
export const countLogs = async (
  reader: Reader,
  tenantId: string,
  entityType: string | undefined,
  moments: readonly string[],
): Promise<readonly number[]> => {
  const sequence = await sequenceOf(reader, tenantId, { entityType });
  const before = await sequence.countsBefore(moments);
  return before.slice(1).map((count, i) => count - (before[i] ?? 0));
};

/** What rows can be grouped by, and the sequence that numbers each group. */
const GROUPED_BY = { operation: 'by_operation', entity_type: 'by_type' } as const;
export type Grouping = keyof typeof GROUPED_BY;

export interface LogGroups {
  /** The largest, largest first. */
  readonly groups: readonly { readonly value: string; readonly count: number }[];
  /** How many rows are in none of them. */
  readonly rest: number;
}

/** Groups that are compared: the first by name. Any others count as the rest. */
const MAX_COMPARED = 100;
const MAX_GROUPS = 10;

/** How many rows there are from one moment to another, by operation or by entity type. */
export const groupLogs = async (
  reader: Reader,
  tenantId: string,
  by: Grouping,
  [from, upTo]: readonly [string, string],
): Promise<LogGroups> => {
  const sequence = GROUPED_BY[by];
  const [ends, all] = await Promise.all([
    reader.sequenceEnds(tenantId, 'rows', sequence, MAX_COMPARED),
    countLogs(reader, tenantId, undefined, [from, upTo]),
  ]);
  const parts = ends.map(({ value, last }) => ({
    sequence,
    equal: [value],
    last,
    monotonicField: 'created_at',
  }));
  const counts = await reader.countsBefore(tenantId, 'rows', parts, [from, upTo]);
  const groups = ends
    .map(({ value }, i) => ({ value, count: (counts[i]?.[1] ?? 0) - (counts[i]?.[0] ?? 0) }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, MAX_GROUPS);
  const inGroups = groups.reduce((sum, { count }) => sum + count, 0);
  // Rows that came in between are in the groups only.
  return { groups, rest: Math.max(0, (all[0] ?? 0) - inGroups) };
};
