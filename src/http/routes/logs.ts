import { findLogs, isNumbered, type LogFilter } from '../../../projections/log-pages';
import { findLog, listEntityTypes, logView, MAX_TYPES } from '../../../projections/logs';
import { dateParameter, mustBeInOrder, queryCheck, textParameter } from '../query-parameters';
import { invalid } from '../validation';
import { logCsv, prefersCsv } from './log-csv';
import { cursorRefused, pageParameters, paging } from './pagination';
import { ok, route } from '../route';
import { logCsvExample, logPageSchema } from './log-schemas';
import { described, listOf, record, text } from '../schema';

const parameters = {
  entity_type: textParameter('Only logs of this entity type.', 'tenant'),
  entity_id: textParameter('Only logs of this entity.', '11111111-2222-4333-8444-555555555555'),
  start_date: dateParameter('Only logs from this moment on: ISO 8601; a date alone is midnight UTC.'),
  end_date: dateParameter('Only logs before this moment, written likewise.'),
  ...pageParameters('Logs'),
  actor_id: textParameter(
    'Only what this actor did. There are no totals, and `page` is refused: pages follow each other by `start`.',
    'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
  ),
  operation: textParameter('Only logs of this operation; pages as with `actor_id`.', 'update'),
  trace_id: textParameter('Only logs of requests with this trace id; pages as with `actor_id`.', 'trace-1'),
};

const query = queryCheck(parameters);

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
  if (values.page !== undefined && !isNumbered(filter))
    throw invalid({ page: ['must be absent with actor_id, operation and trace_id: use start'] });
  return filter;
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
    csv: logCsvExample,
  },
  isQuery: true,
  handle: async (request, dependencies) => {
    const { tenantId, reader, query: values } = request;
    const filter = filterOf(values);
    if (prefersCsv(request)) return logCsv(filter, request, dependencies);
    const { page, size, place, shown } = paging(request);
    const olderThan = place === undefined ? undefined : await findLog(reader, tenantId, place);
    if (place !== undefined && olderThan === undefined) throw cursorRefused();
    const { rows, total, last } = await findLogs(reader, tenantId, { filter, olderThan, page, size });
    const data = rows.map((row) => logView(tenantId, row));
    return shown(data, total, last?.id);
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
  },
  isQuery: true,
  handle: async ({ tenantId, reader }) => ok(await listEntityTypes(reader, tenantId)),
});
