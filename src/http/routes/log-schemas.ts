import { csvText } from '../../csv';
import { paginationSchema } from './pagination';
import { listOf, described, moment, record, sampleOf, text, uuid, type Schema } from '../schema';

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
  },
  ['actor_id', 'actor_type'],
);

export const logPageSchema: Schema = record('LogPage', {
  pagination: described(paginationSchema, 'The position of this page.'),
  data: described(listOf(logSchema), 'The rows, newest first.'),
});

export const logExample = sampleOf(logSchema) as object;

export const logCsvExample = csvText([Object.keys(logExample), Object.values(logExample)]);
