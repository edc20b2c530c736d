import { reportUsage } from '../../../projections/usage';
import { route } from '../route';
import { count, described, moment, record, type Schema } from '../schema';

const metrics = record(
  'TokenTypeMetrics',
  {
    count: described(count, 'Number of existing tokens of this type.', 2),
    last_created_at: described(moment, 'When the last one was created.'),
  },
  ['last_created_at'],
);

const usageReport: Schema = record('TenantUsageReport', {
  token_report: described(
    record('TokenReport', {
      metrics_by_type: {
        type: 'object',
        description: 'By token type: `token`, `card`, `bank`, each once it was seen.',
        additionalProperties: metrics,
      },
      included_monthly_active_tokens: described(count, 'What the plan includes.', 0),
      monthly_active_tokens: described(count, 'Tokens created, read or used in this month (UTC).', 3),
    }),
    'Token usage of the Tenant.',
  ),
});

export const getTenantUsageReport = route({
  method: 'get',
  path: '/tenants/self/reports/usage',
  summary: 'Get the Tenant usage report',
  permission: 'report:read',
  response: { description: 'Tokens per type and active in this month.', schema: usageReport },
  reads: true,
  handle: async ({ tenantId, at, read }) => ({
    body: await read((reader) => reportUsage(reader, tenantId, at)),
  }),
});
