import {
  applicationTypes,
  isApplicationType,
  permissions,
  permissionsOf,
  type ApplicationType,
} from '../domain/permissions';
import { parameter } from './parameters';
import { ok, route } from './route';
import { listOf, record, text } from './schema';

const applicationType = parameter<ApplicationType | undefined>({
  description: 'Only what Applications of this type may hold.',
  schema: { enum: applicationTypes },
  fallback: undefined,
  mayBeEmpty: true,
  read: (type) => (isApplicationType(type) ? type : undefined),
  rule: `must be one of ${applicationTypes.join(', ')}`,
});

const permission = record('Permission', {
  type: text,
  description: text,
  application_types: listOf({ enum: applicationTypes }),
});

export const listPermissions = route({
  method: 'get',
  path: '/permissions',
  summary: 'List permissions',
  parameters: { application_type: applicationType },
  answer: { status: 200, description: 'The permissions.', schema: listOf(permission) },
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
