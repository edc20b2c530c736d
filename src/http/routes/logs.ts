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
import { operationFilter } from './operation-filter';
import { pageParameters, paginationOf, paginationSchema, placeOf } from './pagination';
import { ok, route } from './route';
import { described, listOf, moment, record, text, uuid, type Schema } from './schema';

const log = record(
  'Log',
  {
    id: described(uuid, 'The id of the underlying event.'),
    tenant_id: described(uuid, 'The Tenant that owns the entity.'),
    actor_id: described(uuid, 'Who did it.'),
    actor_type: described(text, 'What kind of actor it was. More kinds may come.', 'application', 'user'),
    entity_type: described(text, 'What kind of entity it is about. More kinds may come.', 'tenant', 'token'),
    entity_id: described(text, 'Which entity of that type.'),
    operation: described(text, 'What was done. More may come.', 'create', 'update', 'read', 'delete'),
    message: described({ type: 'string', maxLength: 250 }, 'One sentence, at most 250 UTF-16 units.'),
    created_at: described(
      moment,
      'When the row was recorded; it never runs backwards in the log of a Tenant.',
    ),
  },
  ['actor_id', 'actor_type'],
);

const logPageSchema: Schema = record('LogPage', {
  pagination: described(paginationSchema, 'The position of this page.'),
  data: described(listOf(log), 'The rows, newest first.'),
});

const logPageExample = {
  pagination: { total_items: 1, page_number: 1, page_size: 20, total_pages: 1 },
  data: [
    {
      id: '99999999-8888-4777-8666-555555555555',
      tenant_id: '11111111-2222-4333-8444-555555555555',
      actor_id: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
      actor_type: 'application',
      entity_type: 'tenant',
      entity_id: '11111111-2222-4333-8444-555555555555',
      operation: 'update',
      message: 'Tenant updated',
      created_at: '2026-01-31T12:00:00.001Z',
    },
  ],
};

const entityTypesSchema: Schema = listOf(
  record('EntityType', {
    display_name: described(text, 'For people.', 'Tenant'),
    value: described(text, 'As used in `entity_type`.', 'tenant'),
  }),
);

const entityTypesExample = [{ display_name: 'Tenant', value: 'tenant' }];

const parameters = {
  entity_type: textParameter('Only logs of this entity type.', 'tenant'),
  entity_id: textParameter('Only logs of this entity.', '11111111-2222-4333-8444-555555555555'),
  start_date: dateParameter(
    'Only logs from this moment on: ISO 8601, extended or basic; a date alone is midnight UTC.',
  ),
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

const filterOf = (values: Query, operation: string | undefined): LogFilter => {
  mustBeInOrder(values);
  const filter = {
    entityType: values.entity_type,
    entityId: values.entity_id,
    start: values.start_date,
    end: values.end_date,
    actorId: values.actor_id,
    operation,
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

export const listLogs = route({
  method: 'get',
  path: '/logs',
  operationId: 'listLogs',
  summary: 'List logs',
  tag: 'Logs',
  permission: 'log:read',
  query,
  response: {
    status: 200,
    description: 'A page of the audit log, newest first.',
    schema: logPageSchema,
    example: logPageExample,
  },
  projection: 'logs',
  handle: async ({ tenantId, query: values }, stores) => {
    const { reader, cursors } = stores;
    const filter = filterOf(values, await operationFilter(values.operation, tenantId, stores));
    const { page, size, start } = values;
    const older = olderThan(placeOf(start, cursors, tenantId, filterText(filter)));
    const { rows, total, last } = await findLogs(reader('logs'), tenantId, { filter, page, size, ...older });
    const next =
      last === undefined ? undefined : cursors.make(tenantId, filterText(filter), placeAt(filter, last));
    const body = {
      pagination: paginationOf({ page, size, total, next }),
      data: rows.map((row) => logView(tenantId, row)),
    };
    return ok(body);
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
    schema: entityTypesSchema,
    example: entityTypesExample,
    truncatable: true,
  },
  projection: 'logs',
  handle: async ({ tenantId }, { reader }) => {
    const { types, total } = await listEntityTypes(reader('logs'), tenantId);
    return { ...ok(types), ...(total > types.length ? { totalItems: total } : {}) };
  },
});
