import { count, listOf, meaning, moment, record, text, uuid, type Schema } from './schema';

/** What the answers about logs look like. */
export const LARGEST_SIZE = 100;

const log = record(
  'Log',
  {
    id: meaning(uuid, 'The id of the underlying event.'),
    tenant_id: meaning(uuid, 'The Tenant that owns the entity.'),
    actor_id: meaning(uuid, 'Who did it.'),
    actor_type: meaning(text, 'What kind of actor it was. More kinds may come.', 'application', 'user'),
    entity_type: meaning(text, 'What kind of entity it is about. More kinds may come.', 'tenant', 'token'),
    entity_id: meaning(text, 'Which entity of that type.'),
    operation: meaning(text, 'What was done. More may come.', 'create', 'update', 'read', 'delete'),
    message: meaning({ type: 'string', maxLength: 250 }, 'One sentence, at most 250 UTF-16 units.'),
    created_at: meaning(moment, 'When the row was recorded; it never runs backwards in the log of a Tenant.'),
  },
  ['actor_id', 'actor_type'],
);

const whole = { type: 'integer', format: 'int64', minimum: 1 };

const pagination = record(
  'Pagination',
  {
    total_items: meaning(count, 'Rows that fit the filters; left out where those are not counted.', 1),
    page_number: meaning(whole, 'The page that this is.', 1),
    page_size: meaning({ ...whole, maximum: LARGEST_SIZE }, 'Rows of a full page.', 20),
    total_pages: meaning(count, 'Pages of this size; left out likewise.', 1),
    after: meaning(text, 'Left out on the last page: `start` of the page after this one.'),
    next: meaning(text, 'The same as `after`.'),
  },
  ['total_items', 'total_pages', 'after', 'next'],
);

export const logPageSchema: Schema = record('LogPage', {
  pagination: meaning(pagination, 'Where this page is.'),
  data: meaning(listOf(log), 'The rows, newest first.'),
});

export const logPageExample = {
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

export const entityTypesSchema: Schema = listOf(
  record('EntityType', {
    display_name: meaning(text, 'For people.', 'Tenant'),
    value: meaning(text, 'As it stands in `entity_type`.', 'tenant'),
  }),
);

export const entityTypesExample = [{ display_name: 'Tenant', value: 'tenant' }];
