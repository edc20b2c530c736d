import { ask, rename } from '../support/http';
import { found, scrape } from '../support/metrics';
import { fact, reportFacts } from '../support/reported-facts';
import { commandJson, serviceForTests } from '../support/service';
import { until } from '../support/waiting';

describe('/metrics', () => {
  const service = serviceForTests({ RATE_LIMITS: 'global=60' });

  const get = (key?: string) => ask(`${service.url}/tenants/self`, key === undefined ? {} : { key });

  it('follows the Prometheus conventions', async () => {
    await get(service.key);
    const { type, families, samples } = await scrape(service);
    expect(type).toMatch(/^text\/plain; version=0\.0\.4/);
    const own = [...families.keys()].filter((name) => name.startsWith('tenant_ledger_'));
    expect(own.length).toBeLessThanOrEqual(20);
    for (const [name, family] of families) {
      expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
      expect(family.help).toMatch(/\.$|^[^.]+$/);
      if (family.type === 'counter') expect(name).toMatch(/_total$/);
      else expect(name).not.toMatch(/_(count|sum|bucket)$/);
      if (family.type === 'histogram') expect(name).toMatch(/_(seconds|bytes)$/);
      expect(name).not.toMatch(/milli|_ms\b|kilo|mega/);
    }
    for (const { name } of samples)
      expect([...families.keys()]).toContain(
        families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
      );
  });

  it('contains no tenant, key or path that was sent', async () => {
    await ask(`${service.url}/nowhere/${service.key}`, { key: service.key });
    const { samples } = await scrape(service);
    for (const { labels } of samples)
      expect(JSON.stringify(labels)).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|key_|nowhere/);
  });

  it('counts requests, key checks and appends', async () => {
    const before = await scrape(service);
    await get(service.key);
    await get();
    await get('key_wrong');
    await rename(service, service.key, 'B');
    const after = await scrape(service);
    const grown = (name: string, labels: Record<string, string>): number =>
      found(after, name, labels) - found(before, name, labels);
    const requests = 'tenant_ledger_http_request_duration_seconds_count';
    expect(grown(requests, { method: 'GET', route: '/tenants/self', status: '200' })).toBe(1);
    expect(grown(requests, { method: 'PUT', route: '/tenants/self', status: '200' })).toBe(1);
    expect(grown(requests, { method: 'GET', route: '/tenants/self', status: '401' })).toBe(2);
    expect(grown('tenant_ledger_key_checks_total', { outcome: 'accepted' })).toBe(2);
    expect(grown('tenant_ledger_key_checks_total', { outcome: 'missing' })).toBe(1);
    expect(grown('tenant_ledger_key_checks_total', { outcome: 'malformed' })).toBe(1);
    expect(grown('tenant_ledger_append_duration_seconds_count', { outcome: 'ok' })).toBe(1);
    expect(found(after, 'tenant_ledger_http_requests_in_flight')).toBe(0);
  });

  it('reports how far the read models are', async () => {
    const metrics = await scrape(service);
    for (const name of ['read_models_lag_events', 'read_models_lag_seconds', 'parked_tenants'])
      expect(found(metrics, `tenant_ledger_${name}`)).toBe(0);
    for (const name of ['ready', 'event_log_up', 'read_models_up'])
      expect(found(metrics, `tenant_ledger_${name}`)).toBe(1);
  });

  it('counts parked tenants', async () => {
    const { tenant_id = '' } = await commandJson(['tenant', 'create', '--name', 'A'], {
      DATA_DIR: service.folder,
    });
    await reportFacts(service.folder, tenant_id, [fact('NeverHeardOf', 'x')]);
    const parked = async () => found(await scrape(service), 'tenant_ledger_parked_tenants');
    await until(async () => (await parked()) === 1);
    await until(() => service.stderr().includes(`Tenant ${tenant_id} is parked at event `));
    expect(found(await scrape(service), 'tenant_ledger_unreadable_tenants')).toBe(0);
  });

  it('counts requests refused by a rate limit', async () => {
    while ((await get(service.key)).status !== 429);
    const metrics = await scrape(service);
    expect(found(metrics, 'tenant_ledger_rate_limit_refusals_total', { policy: 'global' })).toBe(1);
  });
});
