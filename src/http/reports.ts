import { reportUsage } from '../../projections/usage';
import { ok, route } from './route';

export const readOwnUsage = route({
  method: 'get',
  path: '/tenants/self/reports/usage',
  permission: 'report:read',
  from: 'usage',
  handle: async ({ tenantId, at }, { reader }) => ok(await reportUsage(reader('usage'), tenantId, at)),
});
