import { limitsView } from '../limits/policies';
import { ok, route } from './route';

export const listLimits = route({
  method: 'get',
  path: '/limits',
  handle: async (_, { limits }) => ok(limitsView(limits.policies)),
});
