import { applicationTypes, isApplicationType, permissions, permissionsOf } from '../domain/permissions';
import { invalid } from './invalid';
import { ok, route } from './route';

export const listPermissions = route({
  method: 'get',
  path: '/permissions',
  handle: async ({ query }) => {
    const type = query.get('application_type') ?? '';
    if (type !== '' && !isApplicationType(type))
      throw invalid({ application_type: [`must be one of ${applicationTypes.join(', ')}`] });
    const rows = type === '' ? permissions : permissionsOf(type);
    return ok(
      rows.map((row) => ({
        type: row.type,
        description: row.description,
        application_types: row.applicationTypes,
      })),
    );
  },
});
