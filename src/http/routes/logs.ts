import { findLogs, isNumbered, type LogFilter } from '../../../projections/log-pages';
import { findLog, listEntityTypes, logView, MAX_TYPES } from '../../../projections/logs';
import { sources } from '../../domain/audit-wording';
import {
  choiceParameter,
  dateParameter,
  mustBeInOrder,
  textParameter,
  type ValuesOf,
} from '../query-parameters';
import { route } from '../route';
import { described, listOf, moment, record, text, uuid, oneOf } from '../schema';
import { invalid } from '../validation';
import { cursorRefused, pageParameters, paginationSchema, paging } from './pagination';

export const logSchema = record(
  'Log',
  {
    id: described(uuid, 'The id of the underlying event.'),
    tenant_id: described(uuid, 'The Tenant that owns the entity.'),
    actor_id: described(uuid, 'Who did it.', 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'),
    actor_type: described(text, 'What kind of actor it was. More kinds may come.', 'application', 'user'),
    entity_type: described(text, 'What kind of entity it is about. More kinds may come.', 'tenant', 'token'),
    entity_id: described(text, 'Which entity of that type.', '11111111-2222-4333-8444-555555555555'),
    operation: described(text, 'What was done. More may come.', 'create', 'update', 'read', 'delete'),
    message: described(
      { type: 'string', maxLength: 250 },
      'One sentence, at most 250 UTF-16 units.',
      'Tenant created',
    ),
    created_at: described(
      moment,
      'When the row was recorded; it never runs backwards in the log of a Tenant.',
    ),
    source: described(
      oneOf(sources),
      'Who says so. `decision`: this service decided it; `access`: what a key was used for and refused; `fact`: another service reported it.',
    ),
    actor_name: described(
      text,
      'What the Application that did it was called then; absent where that is not on record.',
      'Backend',
    ),
    occurred_at: described(moment, 'When a fact says that it happened; absent where it does not say.'),
  },
  ['actor_id', 'actor_type', 'actor_name', 'occurred_at'],
);

/** The filters of the log: of its pages, of CSV and of the events behind it. */
export const logFilters = {
  entity_type: textParameter('Only what is about entities of this type.', 'tenant'),
  entity_id: textParameter('Only what is about this entity.', '11111111-2222-4333-8444-555555555555'),
  start_date: dateParameter(
    'Only what was recorded from this moment on: ISO 8601; a date alone is midnight UTC.',
  ),
  end_date: dateParameter('Only what was recorded before this moment, written likewise.'),
  actor_id: textParameter('Only what this actor did.', 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee'),
  operation: textParameter('Only this operation.', 'update'),
  trace_id: textParameter('Only what requests with this trace id caused.', 'trace-1'),
  source: choiceParameter(
    'Only what was decided here (`decision`), what keys did (`access`), or what other services reported (`fact`).',
    sources,
    'decision',
  ),
};

export const logFilterOf = (values: ValuesOf<typeof logFilters>): LogFilter => {
  mustBeInOrder(values);
  const { entity_type: type, operation } = values;
  return { ...values, entity_type: type?.toLowerCase(), operation: operation?.toLowerCase() };
};

const UNNUMBERED = 'actor_id, operation, trace_id or source';

export const listLogs = route({
  method: 'get',
  path: '/logs',
  summary: 'List logs',
  permission: 'log:read',
  query: { ...logFilters, ...pageParameters('Logs') },
  response: {
    description:
      'A page of the audit log, newest first. Each filter alone has totals, and so has `entity_type` with `entity_id`, also with dates. Where `actor_id`, `operation`, `trace_id` or `source` is combined with another one, there are no totals, and `page` is refused: pages follow each other by `start`.',
    schema: record('LogPage', {
      pagination: described(paginationSchema, 'The position of this page.'),
      data: described(listOf(logSchema), 'The rows, newest first.'),
    }),
  },
  reads: true,
  handle: async (request) => {
    const { tenantId, read } = request;
    const filter = logFilterOf(request.query);
    if (request.query.page !== undefined && !isNumbered(filter))
      throw invalid({ page: [`must be absent where ${UNNUMBERED} has other filters beside it: use start`] });
    const { page, size, place, shown } = paging(request);
    const { rows, total, last } = await read(async (reader) => {
      const olderThan = place === undefined ? undefined : await findLog(reader, tenantId, place);
      if (place !== undefined && olderThan === undefined) throw cursorRefused();
      return findLogs(reader, tenantId, { filter, olderThan, page, size });
    });
    const data = rows.map((row) => logView(tenantId, row));
    return shown(data, total, last?.id);
  },
});

export const listLogEntityTypes = route({
  method: 'get',
  path: '/logs/entity-types',
  summary: 'List log entity types',
  permission: 'log:read',
  response: {
    description: `The entity types in the log: those of every Tenant, and the first ${MAX_TYPES.toLocaleString('en')} other types that occurred.`,
    schema: listOf(
      record('EntityType', {
        display_name: described(text, 'For people.', 'Tenant'),
        value: described(text, 'As used in `entity_type`.', 'tenant'),
      }),
    ),
  },
  reads: true,
  handle: async ({ tenantId, read }) => ({ body: await read((reader) => listEntityTypes(reader, tenantId)) }),
});
