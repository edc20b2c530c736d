import { demoMonth, randomFrom } from '../../src/cli/demo/demo-month';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { eventsIn, operatorAt } from '../support/operator';
import { startService } from '../support/service';

interface Demo {
  readonly tenant_id: string;
  readonly name: string;
  readonly facts: number;
  readonly key: string;
  readonly portal: string | null;
}

describe('tenant-ledger demo', () => {
  it('creates data to look at, beside a running server', async () => {
    const service = await startService();
    const { code, stdout, stderr } = await operatorAt(service.folder).run('demo --json');
    const demo = JSON.parse(stdout) as Demo;
    expect([code, demo.portal]).toEqual([0, 'http://127.0.0.1:8080/portal']);
    expect(stderr).toContain('it takes no times from the past');
    const get = async (path: string) => (await ask(`${service.url}${path}`, { key: demo.key })).json;
    expect(await get('/tenants/self')).toMatchObject({ id: demo.tenant_id, name: demo.name });
    expect((await get('/logs?size=1')).pagination.total_items).toBeGreaterThan(demo.facts);
    const { data } = await get('/applications');
    expect(data.map(({ name }: { name: string }) => name).toSorted()).toEqual([
      'Billing',
      'Checkout',
      'Console',
      'Nightly reports',
    ]);
    const { token_report: report } = await get('/tenants/self/reports/usage');
    expect(Object.keys(report.metrics_by_type).toSorted()).toEqual(['bank', 'card', 'token']);
    expect(report.monthly_active_tokens).toBeGreaterThan(0);
    expect(await service.stop()).toBe(0);
  });

  it('works on an empty folder, prints readable output, creates another tenant each time, and names the portal if there is one', async () => {
    const operator = operatorAt(freshFolder(), { PUBLIC_URL: 'https://ledger.example.com' });
    const first = await operator.run('demo');
    const second = await operatorAt(operator.folder, { PORTAL: 'false' }).run('demo --json');
    expect([first.code, (JSON.parse(second.stdout) as Demo).portal]).toEqual([0, null]);
    expect(first.stdout).toMatch(
      /^tenant_id: +[0-9a-f-]{36}\nname: +Acme Payments \(demo\)\nfacts: +\d{4}\nkey: +key_\w{55}\nportal: +https:\/\/ledger\.example\.com\/portal\n$/,
    );
    expect(await operator.json<readonly unknown[]>('tenant list')).toHaveLength(2);
    const types = new Set((await eventsIn(operator.folder)).map(({ type }) => type));
    for (const type of ['KeyRevoked', 'ApplicationDeleted', 'TenantUpdated', 'TokenDeleted', 'ProxyUsed'])
      expect([type, types.has(type)]).toEqual([type, true]);
  });
});

describe('the month of a demo', () => {
  const actors = { creating: 'c', using: 'u', reading: 'r' };
  const now = Date.parse('2026-03-18T15:00:00Z');
  const month = demoMonth('t', actors, now, randomFrom(1));
  const days = month.map(({ data }) => data.occurredAt.slice(0, 10));

  it('covers thirty days up to now, in order, with quieter weekends', () => {
    const times = month.map(({ data }) => data.occurredAt);
    expect(times).toEqual(times.toSorted());
    expect([days[0], days.at(-1)]).toEqual(['2026-02-17', '2026-03-18']);
    expect(new Set(days).size).toBe(30);
    expect(times.at(-1)! < '2026-03-18T15:00:00.000Z').toBe(true);
    const on = (day: string) => days.filter((one) => one === day).length;
    expect(on('2026-03-14') * 2).toBeLessThan(on('2026-03-13'));
  });

  it('tells of no entity before it was created or after it was deleted', () => {
    const state = new Map<string, 'alive' | 'deleted'>();
    for (const { type, data } of month) {
      const isCreated = type.endsWith('Created');
      expect([data.entityId, state.get(data.entityId)]).toEqual([
        data.entityId,
        isCreated ? undefined : 'alive',
      ]);
      state.set(data.entityId, type.endsWith('Deleted') ? 'deleted' : 'alive');
    }
  });

  it('has the same shape for the same seed', () => {
    const shape = (facts: typeof month) => facts.map(({ type, data }) => `${type} ${data.occurredAt}`);
    expect(shape(demoMonth('t', actors, now, randomFrom(1)))).toEqual(shape(month));
    expect(shape(demoMonth('t', actors, now, randomFrom(2)))).not.toEqual(shape(month));
  });
});
