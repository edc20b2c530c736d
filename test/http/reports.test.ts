import { beside, type Beside } from '../support/beside';
import { customerOf, type Customer } from '../support/customers';
import { ask, type ApiResponse } from '../support/http';
import { fact } from '../support/reported-facts';
import { startService, type Service } from '../support/service';

const PATH = '/tenants/self/reports/usage';

let service: Service;
beforeAll(async () => {
  service = await startService();
});

describe('GET /tenants/self/reports/usage', () => {
  let by: Beside;
  beforeAll(async () => {
    by = await beside(service);
  });

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

  it('states what the plan includes, as soon as it has changed', async () => {
    const { key, tenantId } = await newCustomer();
    for (const included of [250, 0, 999_999_999_999_999]) {
      await by.run('tenant', 'set-plan', tenantId, '--included-tokens', String(included));
      expect((await usageOf(key)).json.token_report.included_monthly_active_tokens).toBe(included);
    }
  });
});
