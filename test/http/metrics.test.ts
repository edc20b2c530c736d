import { ask } from '../support/http';
import { found, scrape } from '../support/metrics';
import { fact, reportFacts } from '../support/reported-facts';
import { commandJson, startService, type Service } from '../support/service';
import { until } from '../support/waiting';

describe('/metrics', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ RATE_LIMITS: 'global=60' });
  });

  const get = (key?: string) => ask(`${service.url}/tenants/self`, key === undefined ? {} : { key });

  it('follows the Prometheus conventions', async () => {
    await get(service.key);
    const { type, families, samples } = await scrape(service);
    expect(type).toMatch(/^text\/plain; version=0\.0\.4/);
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
    await ask(`${service.url}/tenants/self`, { method: 'PUT', key: service.key, body: { name: 'B' } });
    const after = await scrape(service);
    const grown = (name: string, labels: Record<string, string>): number =>
      found(after, name, labels) - found(before, name, labels);
    const requests = 'tenant_ledger_http_request_duration_seconds_count';
    expect(grown(requests, { method: 'GET', route: '/tenants/self', status: '200' })).toBe(1);
    expect(grown(requests, { method: 'PUT', route: '/tenants/self', status: '200' })).toBe(1);
    expect(grown(requests, { method: 'GET', route: 'none', status: '401' })).toBe(2);
    expect(grown('tenant_ledger_key_checks_total', { outcome: 'accepted' })).toBe(2);
    expect(grown('tenant_ledger_key_checks_total', { outcome: 'missing' })).toBe(1);
    expect(grown('tenant_ledger_key_checks_total', { outcome: 'malformed' })).toBe(1);
    expect(grown('tenant_ledger_append_duration_seconds_count', { outcome: 'ok' })).toBe(1);
    expect(found(after, 'tenant_ledger_http_requests_in_flight')).toBe(0);
    expect(grown('tenant_ledger_expiring_key_uses_total', {})).toBe(0);
  });

  it('counts the uses of a key that expires soon', async () => {
    const store = { DATA_DIR: service.folder };
    const of = ['--tenant', (await get(service.key)).json.id];
    const [application] = await commandJson<{ application_id: string }[]>(
      ['application', 'list', ...of],
      store,
    );
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const { key = '' } = await commandJson(
      ['key', 'create', ...of, '--application', application?.application_id ?? '', '--expires', tomorrow],
      store,
    );
    expect((await get(key)).status).toBe(200);
    expect(found(await scrape(service), 'tenant_ledger_expiring_key_uses_total')).toBe(1);
  });

  it('reports how far the projections are', async () => {
    const metrics = await scrape(service);
    const events = found(metrics, 'tenant_ledger_event_log_events');
    expect(events).toBeGreaterThan(0);
    for (const projection of ['tenants', 'applications', 'logs', 'usage']) {
      expect(found(metrics, 'tenant_ledger_projection_lag_events', { projection })).toBe(0);
      expect(found(metrics, 'tenant_ledger_projection_position', { projection })).toBe(events);
      expect(found(metrics, 'tenant_ledger_parked_tenants', { projection })).toBe(0);
    }
    for (const name of ['ready', 'event_log_up', 'projector_up'])
      expect(found(metrics, `tenant_ledger_${name}`)).toBe(1);
    expect(found(metrics, 'tenant_ledger_disk_free_bytes')).toBeGreaterThan(0);
    expect(metrics.samples.filter(({ name }) => name === 'tenant_ledger_parked_events')).toEqual([]);
  });

  it('reports each bad event once, however many projections wait at it', async () => {
    const of = { DATA_DIR: service.folder };
    const create = (name: string) => commandJson(['tenant', 'create', '--name', name], of);
    const parked: { readonly tenant_id: string; readonly event_id: string }[] = [];
    for (const name of ['First', 'Second']) {
      const { tenant_id = '' } = await create(name);
      const [event_id = ''] = await reportFacts(service.folder, tenant_id, [fact('NeverHeardOf', 'x')]);
      parked.push({ tenant_id, event_id });
      await until(async () => {
        const metrics = await scrape(service);
        return parked.every((labels) => found(metrics, 'tenant_ledger_parked_events', labels) === 2);
      });
    }
  });

  it('counts requests refused by a rate limit', async () => {
    while ((await get(service.key)).status !== 429);
    const metrics = await scrape(service);
    expect(found(metrics, 'tenant_ledger_rate_limit_refusals_total', { policy: 'global' })).toBe(1);
    expect(found(metrics, 'tenant_ledger_rate_limit_counters')).toBe(1);
  });
});
