import { monthOf, reportUsage } from '../../../projections/usage';
import { isMonth, MONTH_PATTERN } from '../../domain/texts';
import { textParameter, wholeNumberParameter } from '../query-parameters';
import { route } from '../route';
import { count, described, listOf, moment, record, type Schema } from '../schema';

const metrics = record(
  'TokenTypeMetrics',
  {
    count: described(count, 'Number of existing tokens of this type.', 2),
    last_created_at: described(moment, 'When the last one was created.'),
  },
  ['last_created_at'],
);

const monthSchema = { type: 'string', pattern: MONTH_PATTERN };
const inMonth = {
  included_monthly_active_tokens: described(count, 'What the plan included at the end of the month.', 0),
  monthly_active_tokens: described(count, 'Tokens created, read or used in the month (UTC).', 3),
};

const usageReport: Schema = record(
  'TenantUsageReport',
  {
    token_report: described(
      record('TokenReport', {
        metrics_by_type: {
          type: 'object',
          description: 'By token type: `token`, `card`, `bank`, each once it was seen; always as it is now.',
          additionalProperties: metrics,
        },
        ...inMonth,
      }),
      'Token usage of the Tenant, in the current month or in `month`.',
    ),
    months: described(
      listOf(record('UsageMonth', { month: described(monthSchema, 'Which month.', '2026-01'), ...inMonth })),
      'The months that were asked for, oldest first. Absent: none were.',
    ),
  },
  ['months'],
);

const MAX_MONTHS = 120;
const LIST = `Lists so many months up to \`month\`, oldest first; at most ${MAX_MONTHS}.`;

export const getTenantUsageReport = route({
  method: 'get',
  path: '/tenants/self/reports/usage',
  summary: 'Get the Tenant usage report',
  permission: 'report:read',
  query: {
    month: {
      ...textParameter('The month (UTC) that is reported. Default: the current one.', '2026-01'),
      schema: monthSchema,
      read: ([sent = '']: readonly string[]) => (isMonth(sent) ? sent : undefined),
      rule: () => 'must be a month like 2026-01',
    },
    months: { ...wholeNumberParameter(LIST, undefined, { most: MAX_MONTHS }), example: 12 },
  },
  response: { description: 'Tokens per type, and active in a month or in several.', schema: usageReport },
  reads: true,
  handle: async ({ tenantId, at, read, query: { month = monthOf(at), months } }) => ({
    body: await read((reader) => reportUsage(reader, tenantId, month, months)),
  }),
});
