import { readdirSync, rmSync } from 'node:fs';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { ask, type ApiResponse } from '../support/http';
import { describeMongodb } from '../support/mongodb/databases';
import { operatorAt } from '../support/operator';
import { clustered } from '../support/profile';
import { startService, type Service } from '../support/service';
import { until } from '../support/waiting';

jest.setTimeout(120_000);

type Environment = Readonly<Record<string, string>>;

describeMongodb('a service on an event store and MongoDB', () => {
  const folder = freshFolder();
  let eventStore: StandIn;
  let env: Environment;
  let service: Service;
  let key: string;
  let cursor: string;

  beforeAll(async () => {
    eventStore = await startStandIn();
    env = { DATA_DIR: folder, ...clustered(eventStore.url), RATE_LIMITS: 'global=1000/3600/3600' };
    service = await startService(env);
    ({ key } = service);
  });
  afterAll(async () => {
    await service.stop();
    await eventStore.stop();
  });

  const operator = () => operatorAt(folder, env);
  const succeeds = async (line: string): Promise<void> => {
    const { code, stdout, stderr } = await operator().run(line);
    expect({ code, output: code === 0 ? '' : `${stdout}${stderr}` }).toEqual({ code: 0, output: '' });
  };
  const get = (path: string): Promise<ApiResponse> => ask(`${service.url}${path}`, { key });
  const rename = (name: string): Promise<ApiResponse> =>
    ask(`${service.url}/tenants/self`, { method: 'PUT', key, body: { name } });
  /** A read shows the write at once, unless its response says that it may not yet. */
  const showsAtOnce = async (written: ApiResponse, name: string): Promise<void> => {
    expect(written.status).toBe(200);
    const shown = async (): Promise<string> => (await get('/tenants/self')).json.name;
    if (written.headers.has('svc-read-pending')) await until(async () => (await shown()) === name);
    else expect(await shown()).toBe(name);
  };
  const tenantId = async (): Promise<string> => String((await get('/tenants/self')).json.id);

  it('shows a write immediately', async () => {
    for (const name of ['One', 'Two']) await showsAtOnce(await rename(name), name);
    const page = await get('/logs?entity_type=tenant&size=1');
    expect(page.json.data).toMatchObject([{ operation: 'update' }]);
    cursor = String(page.json.pagination.next);
    expect((await get('/tenants/self/reports/usage')).status).toBe(200);
  });

  it('accepts operator commands beside the running server', async () => {
    const id = await tenantId();
    const { tenant_id: other } = await operator().json('tenant create --name Other');
    const listed = await operator().json<{ tenant_id: string }[]>('tenant list');
    expect(new Set(listed.map((tenant) => tenant.tenant_id))).toEqual(new Set([id, other]));
    await succeeds('projections rebuild');
    expect((await get('/tenants/self')).json).toMatchObject({ name: 'Two' });
  });

  it('counts requests together with other instances', async () => {
    const { json } = await ask(`${service.operationsUrl}/readyz`);
    expect(json.limits).toMatchObject({ shared: true });
  });

  it('has everything after a restart, including cursors and last uses of keys, even if the disposable folder was lost', async () => {
    const id = await tenantId();
    const before = (await get('/logs?entity_type=tenant')).json;
    expect(await service.stop()).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
    service = await startService(env);
    expect(service.key).toBe('');
    // Reading this history takes longer than a request may take: it is read once, for the requests that follow.
    eventStore.slowDown(`ledger.tenant-${id}`, 2_300);
    const refused = await rename('Three');
    expect([refused.status, refused.json.code, Number(refused.headers.get('retry-after')) > 0]).toEqual([
      503,
      'log_unavailable',
      true,
    ]);
    eventStore.slowDown(`ledger.tenant-${id}`, 0);
    expect((await get('/logs?entity_type=tenant')).json).toEqual(before);
    const next = await get(`/logs?entity_type=tenant&size=1&start=${encodeURIComponent(cursor)}`);
    expect([next.status, next.json.data.length]).toEqual([200, 1]);
    const keys = await operator().json<{ last_used_at: string | null }[]>(`key list --tenant ${id}`);
    expect(keys.filter(({ last_used_at }) => last_used_at !== null).length).toBe(1);
    await showsAtOnce(await rename('Three'), 'Three');
    await succeeds('projections verify');
  });
});
