import {
  findLogs,
  isNumbered,
  numberIn,
  type LogFilter,
  type LogQuery,
} from '../../../projections/log-pages';
import { listEntityTypes, logView, MAX_TYPES, type LogRow } from '../../../projections/logs';
import { dateParameter, invalid, mustBeInOrder, queryCheck, textParameter } from '../request/validation';
import { uuidFrom } from '../../uuid';
import { logCsv, prefersCsv } from './log-csv';
import { pageParameters, paging } from './pagination';
import { ok, route } from './route';
import { logCsvExample, logPageExample, logPageSchema } from './log-schemas';
import { described, listOf, record, text } from './schema';

const parameters = {
  entity_type: textParameter('Only logs of this entity type.', 'tenant'),
  entity_id: textParameter('Only logs of this entity.', '11111111-2222-4333-8444-555555555555'),
  start_date: dateParameter('Only logs from this moment on: ISO 8601; a date alone is midnight UTC.'),
  end_date: dateParameter('Only logs before this moment, written likewise.'),
  ...pageParameters('Logs'),
  actor_id: textParameter(
    'Only what this actor did. Combined with another filter than dates there are no totals.',
    'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  ),
  operation: textParameter('Only logs of this operation; totals as with `actor_id`.', 'update'),
  trace_id: textParameter('Only logs of requests with this trace id; there are no totals.', 'trace-1'),
};

const query = queryCheck(parameters, 'refused');

type Query = ReturnType<typeof query>;

const filterOf = (values: Query): LogFilter => {
  mustBeInOrder(values);
  const filter = {
    entityType: values.entity_type?.toLowerCase(),
    entityId: values.entity_id,
    start: values.start_date,
    end: values.end_date,
    actorId: values.actor_id,
    operation: values.operation?.toLowerCase(),
    traceId: values.trace_id,
  };
  if (values.page > 1 && !isNumbered(filter))
    throw invalid({ page: ['must be 1 with these filters; use start to get the next page'] });
  return filter;
};

/** Filters beyond the specification are only included if used, so that existing cursors survive an upgrade. */
const filterText = ({ entityType, entityId, start, end, actorId, operation, traceId }: LogFilter): string => {
  const additional = [actorId, operation, traceId];
  const specified = [entityType, entityId, start, end];
  const all = additional.every((value) => value === undefined) ? specified : [...specified, ...additional];
  return JSON.stringify(all.map((value) => value ?? null));
};

/** What a cursor says about a row: the id of its event, and its number. */
const placeAt = (filter: LogFilter, row: LogRow): string => `${row.id} ${numberIn(filter, row)}`;

const olderThan = (place: string | undefined): Pick<LogQuery, 'olderThan'> => {
  if (place === undefined) return {};
  const [eventId, number = 0] = place.split(' ');
  const id = uuidFrom(eventId);
  // Cursors of earlier versions named a position of the log.
  if (id === undefined)
    throw invalid({ start: ['is a cursor of an earlier version of this service: start again without it'] });
  return { olderThan: { id, number: Number(number) } };
};

export const listLogs = route<undefined, Query>({
  method: 'get',
  path: '/logs',
  operationId: 'listLogs',
  summary: 'List logs',
  tag: 'Logs',
  permission: 'log:read',
  query,
  response: {
    status: 200,
    description:
      'A page of the audit log, newest first. As CSV: all rows that match, whatever `page`, `size` and `start` say.',
    schema: logPageSchema,
    example: logPageExample,
    csv: logCsvExample,
  },
  projection: 'logs',
  handle: async (request, stores) => {
    const { tenantId, query: values } = request;
    const filter = filterOf(values);
    if (prefersCsv(request)) return logCsv(filter, request, stores);
    const { page, size, place, shown } = paging(request, stores, filterText(filter));
    const question = { filter, page, size, ...olderThan(place) };
    const { rows, total, last } = await findLogs(stores.reader('logs'), tenantId, question);
    const data = rows.map((row) => logView(tenantId, row));
    return shown(data, total, last === undefined ? undefined : placeAt(filter, last));
  },
});

export const listLogEntityTypes = route({
  method: 'get',
  path: '/logs/entity-types',
  operationId: 'listLogEntityTypes',
  summary: 'List log entity types',
  tag: 'Logs',
  permission: 'log:read',
  response: {
    status: 200,
    description: `The entity types in the log: those of every Tenant, and the first ${MAX_TYPES.toLocaleString('en')} other types that occurred.`,
    schema: listOf(
      record('EntityType', {
        display_name: described(text, 'For people.', 'Tenant'),
        value: described(text, 'As used in `entity_type`.', 'tenant'),
      }),
    ),
    example: [{ display_name: 'Tenant', value: 'tenant' }],
  },
  projection: 'logs',
  handle: async ({ tenantId }, { reader }) => ok(await listEntityTypes(reader('logs'), tenantId)),
});
