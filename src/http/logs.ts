import { parseBorder } from '../domain/moment';
import {
  findLogs,
  numberIn,
  type LogFilter,
  type LogPage,
  type LogQuestion,
} from '../../projections/log-pages';
import { listEntityTypes, type LogRow } from '../../projections/logs';
import type { Cursors } from './cursor';
import { invalid } from './invalid';
import { ok, route } from './route';

const DEFAULT_SIZE = 20;
const LARGEST_SIZE = 100;

type Parameters = ReadonlyMap<string, string>;

/** A parameter that is empty counts as not given. */
const given = (query: Parameters, name: string): string | undefined => {
  const value = query.get(name);
  return value === '' ? undefined : value;
};

/** In a query an unencoded `+` arrives as a space: there it can only have been the sign of an offset. */
const dateOf = (query: Parameters, name: string): string | undefined => {
  const text = given(query, name);
  if (text === undefined) return undefined;
  const moment = parseBorder(text.replace(' ', '+'));
  if (moment === undefined)
    throw invalid({ [name]: ['must be an ISO 8601 date or date-time, for example 2026-01-31T12:00:00Z'] });
  return moment;
};

const numberOf = (query: Parameters, name: string, fallback: number): number => {
  const text = query.get(name);
  if (text === undefined) return fallback;
  const value = /^[0-9]+$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : 0;
  if (value < 1) throw invalid({ [name]: ['must be a whole number, 1 or more'] });
  return value;
};

const filterOf = (query: Parameters): LogFilter => {
  const entityType = given(query, 'entity_type');
  const entityId = given(query, 'entity_id');
  const start = dateOf(query, 'start_date');
  const end = dateOf(query, 'end_date');
  if (start !== undefined && end !== undefined && start > end)
    throw invalid({ start_date: ['must not be after end_date'] });
  return {
    ...(entityType === undefined ? {} : { entityType }),
    ...(entityId === undefined ? {} : { entityId }),
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
  };
};

const filterText = ({ entityType, entityId, start, end }: LogFilter): string =>
  JSON.stringify([entityType ?? null, entityId ?? null, start ?? null, end ?? null]);

const cursorOf = (
  query: Parameters,
  cursors: Cursors,
  tenantId: string,
  filter: LogFilter,
): Pick<LogQuestion, 'olderThan' | 'olderNumber'> => {
  const cursor = given(query, 'start');
  if (cursor === undefined) return {};
  const place = cursors.read(tenantId, filterText(filter), cursor);
  if (place === undefined)
    throw invalid({ start: ['must be a cursor from an earlier answer to the same filters'] });
  const [olderThan = '', number = 0] = place.split(' ');
  return { olderThan, olderNumber: Number(number) };
};

/** The last row's place: its position, and its number as a hint. */
const placeOf = (filter: LogFilter, row: LogRow): string => `${row.position} ${numberIn(filter, row)}`;

/** The eight fields of the specification and the event's id. */
export const logView = (tenantId: string, row: LogRow) => ({
  id: row.id,
  tenant_id: tenantId,
  ...(row.actor_id === undefined ? {} : { actor_id: row.actor_id }),
  ...(row.actor_type === undefined ? {} : { actor_type: row.actor_type }),
  entity_type: row.entity_type,
  entity_id: row.entity_id,
  operation: row.operation,
  message: row.message,
  created_at: row.created_at,
});

const paginationOf = (
  page: number,
  size: number,
  { total, more, rows }: LogPage,
  cursor: (row: LogRow) => string,
) => {
  const last = rows.at(-1);
  const next = more && last !== undefined ? cursor(last) : undefined;
  return {
    total_items: total,
    page_number: page,
    page_size: size,
    total_pages: Math.ceil(total / size),
    ...(next === undefined ? {} : { after: next, next }),
  };
};

export const listLogs = route({
  method: 'get',
  path: '/logs',
  permission: 'log:read',
  from: 'logs',
  handle: async ({ tenantId, query }, { reader, cursors }) => {
    const filter = filterOf(query);
    const page = numberOf(query, 'page', 1);
    const size = Math.min(numberOf(query, 'size', DEFAULT_SIZE), LARGEST_SIZE);
    const older = cursorOf(query, cursors, tenantId, filter);
    const found = await findLogs(reader('logs'), tenantId, { filter, page, size, ...older });
    const cursor = (row: LogRow): string => cursors.make(tenantId, filterText(filter), placeOf(filter, row));
    const body = {
      pagination: paginationOf(page, size, found, cursor),
      data: found.rows.map((row) => logView(tenantId, row)),
    };
    return ok(body);
  },
});

export const listLogEntityTypes = route({
  method: 'get',
  path: '/logs/entity-types',
  permission: 'log:read',
  from: 'logs',
  handle: async ({ tenantId }, { reader }) => ok(await listEntityTypes(reader('logs'), tenantId)),
});
