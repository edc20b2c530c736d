import { permissionsOf } from '../../domain/authority';
import { applicationTypes, permissions } from '../../domain/permissions';
import { choiceParameter } from '../query-parameters';
import { route } from '../route';
import { listOf, described, membersOf, record, text, oneOf } from '../schema';

const permission = record('Permission', {
  type: described(text, 'The name that endpoints refer to: resource and action.', 'tenant:read'),
  description: described(text, 'What it allows.', 'Read Tenants'),
  application_types: described(
    listOf(oneOf(applicationTypes)),
    'The types of Applications that may hold it.',
    ['management'],
  ),
});

export const listPermissions = route({
  method: 'get',
  path: '/permissions',
  summary: 'List permissions',
  query: {
    application_type: choiceParameter(
      'Only what Applications of this type may hold.',
      applicationTypes,
      'management',
    ),
  },
  response: { description: 'The permissions.', schema: listOf(permission) },
  handle: async ({ query: { application_type: type } }) => {
    const rows = type === undefined ? permissions : permissionsOf(type);
    return {
      body: rows.map((row) => membersOf(permission, { ...row, application_types: row.applicationTypes })),
    };
  },
});
