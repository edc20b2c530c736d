import { applicationTypes, permissions, permissionsOf } from '../../domain/permissions';
import { choiceParameter, queryCheck } from '../query-parameters';
import { ok, route } from '../route';
import { listOf, described, record, text } from '../schema';

const query = queryCheck({
  application_type: choiceParameter(
    'Only what Applications of this type may hold.',
    applicationTypes,
    'management',
  ),
});

const permission = record('Permission', {
  type: described(text, 'The name that endpoints refer to: resource and action.', 'tenant:read'),
  description: described(text, 'What it allows.', 'Read Tenants'),
  application_types: described(
    listOf({ type: 'string', enum: applicationTypes }),
    'The types of Applications that may hold it.',
    ['management'],
  ),
});

export const listPermissions = route({
  method: 'get',
  path: '/permissions',
  operationId: 'listPermissions',
  summary: 'List permissions',
  tag: 'Permissions',
  query,
  response: {
    status: 200,
    description: 'The permissions.',
    schema: listOf(permission),
  },
  handle: async ({ query: { application_type: type } }) => {
    const rows = type === undefined ? permissions : permissionsOf(type);
    return ok(
      rows.map((row) => ({
        type: row.type,
        description: row.description,
        application_types: row.applicationTypes,
      })),
    );
  },
});
