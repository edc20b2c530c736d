import { auditLine, displayName, knownEntityTypes } from '../src/domain/audit-wording';
import { eventSchemas } from '../src/domain/event-schemas';
import type { Recorded } from '../src/domain/events';
import { changeTogether, type Change, type Projector, type Reader } from './projector';

/**
 * The audit log of a tenant. Rows are numbered as they are projected, per tenant and per entity type, and their time
 * never runs backwards: so totals are last numbers, a page is a range of numbers, and so is a range of dates.
 */
export interface LogRow {
  readonly id: string;
  readonly number: number;
  readonly type_number: number;
  readonly position: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  readonly actor_id?: string;
  readonly actor_type?: string;
  readonly created_at: string;
}

/** The last number, and the time that the next row must not be before. */
interface Head {
  readonly count: number;
  readonly last_created_at: string;
}

interface TypeHead {
  readonly entity_type: string;
  readonly count: number;
}

const TENANT = 'tenant';
const MOST_TYPES = 10_000;

const laterOf = (a: string, b: string): string => (a > b ? a : b);

/** The second copy of an event is no row. */
const logged = (event: Recorded): readonly Change[] => {
  const line = auditLine(event);
  const touches = [
    { collection: 'rows', key: event.id },
    { collection: 'heads', key: TENANT },
    { collection: 'types', key: line.entityType },
  ];
  return [
    changeTogether(touches, ([row, headNow, typeNow]) => {
      if (row !== undefined) return [row, headNow, typeNow];
      const head = headNow as Head | undefined;
      const type = typeNow as TypeHead | undefined;
      const created_at = laterOf(event.recordedAt, head?.last_created_at ?? '');
      const next: LogRow = {
        id: event.id,
        number: (head?.count ?? 0) + 1,
        type_number: (type?.count ?? 0) + 1,
        position: event.position,
        entity_type: line.entityType,
        entity_id: line.entityId,
        operation: line.operation,
        message: line.message,
        ...(event.actor === undefined ? {} : { actor_id: event.actor.id, actor_type: event.actor.type }),
        created_at,
      };
      return [
        { ...next },
        { count: next.number, last_created_at: created_at },
        { entity_type: line.entityType, count: next.type_number },
      ];
    }),
  ];
};

export const logs: Projector = {
  name: 'logs',
  version: 1,
  streams: ['tenant', 'activity'],
  collections: [
    {
      name: 'rows',
      indexes: {
        by_number: ['number'],
        by_type: ['entity_type', 'type_number'],
        by_entity: ['entity_id', 'number', 'entity_type'],
      },
    },
    { name: 'heads', indexes: {} },
    { name: 'types', indexes: {} },
  ],
  on: Object.fromEntries(Object.keys(eventSchemas).map((type) => [type, logged])),
};

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
  readonly page: number;
  readonly size: number;
}

/** A numbered line of rows: all of a tenant's, or those of one entity type. */
interface Line {
  readonly last: number;
  readonly at: (number: number) => Promise<LogRow>;
  readonly range: (from: number, upTo: number) => Promise<readonly LogRow[]>;
}

const lineOf = async (reader: Reader, tenantId: string, entityType: string | undefined): Promise<Line> => {
  const selection =
    entityType === undefined ? { index: 'by_number' } : { index: 'by_type', equal: [entityType] };
  const head =
    entityType === undefined
      ? await reader.get(tenantId, 'heads', TENANT)
      : await reader.get(tenantId, 'types', entityType);
  const range = async (from: number, upTo: number): Promise<readonly LogRow[]> =>
    (await reader.find(tenantId, 'rows', {
      ...selection,
      from,
      upTo,
      descending: true,
      limit: upTo - from + 1,
    })) as unknown as LogRow[];
  return {
    last: (head as { count: number } | undefined)?.count ?? 0,
    range,
    at: async (number) => {
      const [row] = await range(number, number);
      if (row === undefined) throw new Error(`Log row ${number} of tenant ${tenantId} is missing.`);
      return row;
    },
  };
};

/** How many rows of a line come before the first one for which `isLater` holds: by halving. */
const countBefore = async (line: Line, isLater: (row: LogRow) => boolean): Promise<number> => {
  let low = 0;
  let high = line.last;
  while (low < high) {
    const middle = Math.floor((low + high) / 2) + 1;
    if (isLater(await line.at(middle))) high = middle - 1;
    else low = middle;
  }
  return low;
};

/** The numbers of a line that a filter of dates selects, first and last. */
const numbersOf = async (
  line: Line,
  { start, end }: LogFilter,
): Promise<{ first: number; last: number }> => ({
  first: start === undefined ? 1 : (await countBefore(line, (row) => row.created_at >= start)) + 1,
  last: end === undefined ? line.last : await countBefore(line, (row) => row.created_at >= end),
});

const olderLimit = async (line: Line, last: number, position: string | undefined): Promise<number> =>
  position === undefined ? last : Math.min(last, await countBefore(line, (row) => row.position >= position));

const nothing = (total: number): LogPage => ({ rows: [], total, more: false });

const byNumber = async (reader: Reader, tenantId: string, question: LogQuestion): Promise<LogPage> => {
  const line = await lineOf(reader, tenantId, question.filter.entityType);
  const { first, last } = await numbersOf(line, question.filter);
  const total = Math.max(0, last - first + 1);
  const top = (await olderLimit(line, last, question.olderThan)) - (question.page - 1) * question.size;
  if (top < first) return nothing(total);
  const bottom = Math.max(first, top - question.size + 1);
  return { rows: await line.range(bottom, top), total, more: bottom > first };
};

/** One entity's rows are counted and skipped over: it costs in proportion to that entity's own rows. */
const byEntity = async (
  reader: Reader,
  tenantId: string,
  entityId: string,
  { filter, olderThan, page, size }: LogQuestion,
): Promise<LogPage> => {
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
  const below = selection(await olderLimit(line, last, olderThan));
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

export interface EntityType {
  readonly display_name: string;
  readonly value: string;
}

/** What every tenant knows and whatever else occurs in its log. */
export const listEntityTypes = async (reader: Reader, tenantId: string): Promise<readonly EntityType[]> => {
  const found = (await reader.find(tenantId, 'types', {
    limit: MOST_TYPES,
  })) as unknown as readonly TypeHead[];
  const values = new Set([...knownEntityTypes, ...found.map((type) => type.entity_type)]);
  return [...values]
    .map((value) => ({ display_name: displayName(value), value }))
    .toSorted((a, b) => (a.display_name < b.display_name ? -1 : 1));
};
