import { reportUsage } from '../../projections/usage';
import { ok, route } from './route';
import { count, moment, record, type Schema } from './schema';

const metrics = record('TokenTypeMetrics', { count, last_created_at: moment }, ['last_created_at']);

const usageReport: Schema = record('TenantUsageReport', {
  token_report: record('TokenReport', {
    metrics_by_type: { type: 'object', additionalProperties: metrics },
    included_monthly_active_tokens: count,
    monthly_active_tokens: count,
  }),
});

export const readOwnUsage = route({
  method: 'get',
  path: '/tenants/self/reports/usage',
  summary: 'Get the Tenant usage report',
  permission: 'report:read',
  answer: { status: 200, description: 'Tokens per type and active in this month.', schema: usageReport },
  from: 'usage',
  handle: async ({ tenantId, at }, { reader }) => ok(await reportUsage(reader('usage'), tenantId, at)),
});
