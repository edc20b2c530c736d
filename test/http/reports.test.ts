import { besideForTests } from '../support/beside';
import { customerOf, type Customer } from '../support/customers';
import { ask, type ApiResponse } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact } from '../support/reported-facts';
import { serviceForTests } from '../support/service';

const PATH = '/tenants/self/reports/usage';

const service = serviceForTests();

describe('GET /tenants/self/reports/usage', () => {
  const by = besideForTests(service);

  const newCustomer = (): Promise<Customer> => customerOf(() => service, by);
  const usageOf = (key: string): Promise<ApiResponse> => ask(`${service.url}${PATH}`, { key });

  it('has exactly the fields of the specification, all numbers, and no types at first', async () => {
    const response = await usageOf((await newCustomer()).key);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('private, no-cache');
    expect(response.text).toBe(
      '{"token_report":{"metrics_by_type":{},"included_monthly_active_tokens":0,"monthly_active_tokens":0}}',
    );
  });

  it('counts reported facts; a type that was never created has no last creation', async () => {
    const { key, report } = await newCustomer();
    const now = new Date().toISOString();
    const long = '2020-02-03T04:05:06+02:00';
    await report(
      fact('TokenCreated', 'a', { data: { occurredAt: now } }),
      fact('TokenCreated', 'b', { data: { occurredAt: long } }),
      fact('TokenCreated', 'c', { data: { occurredAt: long } }),
      fact('TokenDeleted', 'c', { data: { occurredAt: now } }),
      fact('CardCreated', 'a', { data: { occurredAt: long } }),
      fact('BankRead', 'a', { data: { occurredAt: now } }),
      fact('ProxyCreated', 'p'),
      fact('ReactorUsed', 'r'),
      fact('ActivityReported', 'z', { data: { entityType: 'token', operation: 'created' } }),
    );
    expect((await usageOf(key)).json).toEqual({
      token_report: {
        metrics_by_type: {
          token: { count: 2, last_created_at: now },
          card: { count: 1, last_created_at: '2020-02-03T02:05:06.000Z' },
          bank: { count: 0 },
        },
        included_monthly_active_tokens: 0,
        monthly_active_tokens: 2,
      },
    });
  });

  it('of a month has its active tokens, those of facts that came late, too', async () => {
    const { key, report } = await newCustomer();
    const read = (entityId: string, day: string) =>
      fact('TokenRead', entityId, { data: { occurredAt: `${day}T12:00:00Z` } });
    await report(
      read('a', '2026-01-31'),
      read('a', '2026-01-01'),
      read('b', '2026-01-02'),
      read('a', '2025-12-01'),
    );
    const reportOf = async (query: string) => (await ask(`${service.url}${PATH}?${query}`, { key })).json;
    const ofMonth = (monthly_active_tokens: number) => ({
      included_monthly_active_tokens: 0,
      monthly_active_tokens,
    });
    expect(await reportOf('month=2026-01')).toEqual({
      token_report: { metrics_by_type: { token: { count: 0 } }, ...ofMonth(2) },
    });
    await report(read('late', '2025-12-31'));
    expect(await reportOf('month=2026-01&months=3')).toEqual({
      token_report: { metrics_by_type: { token: { count: 0 } }, ...ofMonth(2) },
      months: [
        { month: '2025-11', ...ofMonth(0) },
        { month: '2025-12', ...ofMonth(2) },
        { month: '2026-01', ...ofMonth(2) },
      ],
    });
    const { months, token_report } = await reportOf('months=12');
    expect(months).toHaveLength(12);
    expect(months.at(-1)).toEqual({
      month: new Date().toISOString().slice(0, 7),
      included_monthly_active_tokens: token_report.included_monthly_active_tokens,
      monthly_active_tokens: token_report.monthly_active_tokens,
    });
  });

  it.each([
    ['month=2026-13', 'month'],
    ['month=2026-1', 'month'],
    ['month=2026-01-01', 'month'],
    ['months=0', 'months'],
    ['months=121', 'months'],
    ['months=', 'months'],
  ])('is not of %s', async (query, field) => {
    const { key } = await newCustomer();
    expectProblem(await ask(`${service.url}${PATH}?${query}`, { key }), 400, 'validation_failed', field);
  });

  it('states what the plan includes, as soon as it has changed', async () => {
    const { key, tenantId } = await newCustomer();
    for (const included of [250, 0, 999_999_999_999_999]) {
      await by.run('tenant', 'set-plan', tenantId, '--included-tokens', String(included));
      expect((await usageOf(key)).json.token_report.included_monthly_active_tokens).toBe(included);
    }
  });
});
