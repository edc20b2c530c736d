import { EXAMPLE, folderOfRelease010, keysOfRelease010 as keys } from '../support/earlier-folder';
import { ask } from '../support/http';
import { EMBEDDED } from '../support/profile';
import { command, startService, type Service } from '../support/service';

describe('a data folder written by release 0.1.0', () => {
  let service: Service;
  const get = (path: string, key = keys.example) => ask(`${service.url}${path}`, { key });

  beforeAll(async () => {
    service = await startService({ DATA_DIR: folderOfRelease010(), ...EMBEDDED });
  });

  it('serves its tenants, logs and usage as before', async () => {
    expect((await get('/tenants/self')).json).toMatchObject({ id: EXAMPLE, name: 'Example 520' });
    const logs = await get('/logs?size=1');
    expect(logs.json.pagination.total_items).toBe(531);
    expect(logs.json.data[0]).toMatchObject({
      entity_type: 'key',
      operation: 'delete',
      message: 'Key revoked',
    });
    const usage = await get('/tenants/self/reports/usage');
    expect(usage.json.token_report.metrics_by_type).toEqual({
      card: { count: 1, last_created_at: '2026-01-07T08:00:00.000Z' },
      token: { count: 0, last_created_at: '2026-01-05T09:00:00.000Z' },
    });
  });

  it('refuses its revoked keys and those of its deleted tenant', async () => {
    expect((await get('/tenants/self', keys.revoked)).status).toBe(401);
    expect((await get('/tenants/self', keys.ofDeletedTenant)).status).toBe(401);
  });

  it('repeats the responses to its idempotent requests, without another event', async () => {
    const { status, json } = await ask(`${service.url}/tenants/self`, {
      method: 'PUT',
      key: keys.example,
      headers: { 'Idempotency-Key': 'request-7' },
      body: { name: 'Example 7' },
    });
    expect([status, json.name]).toEqual([200, 'Example 7']);
    expect((await get('/tenants/self')).json.name).toBe('Example 520');
    expect((await get('/logs?size=1')).json.pagination.total_items).toBe(531);
  });

  it('is shown by the commands, and passes verification', async () => {
    const env = { DATA_DIR: service.folder, ...EMBEDDED };
    const list = await command(['tenant', 'list', '--json'], env);
    expect(JSON.parse(list.stdout)).toHaveLength(3);
    const { code, stderr } = await command(['projections', 'verify'], env);
    expect([code, stderr]).toEqual([0, '']);
  });
});
