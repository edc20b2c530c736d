import { readdirSync, rmSync } from 'node:fs';
import { mongoConnection } from '../../src/mongodb/connection';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { freshFolder } from '../support/folders';
import { ask, type ApiResponse } from '../support/http';
import { mongodbBehindProxy } from '../support/mongodb-under-test';
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

  beforeAll(async () => {
    eventStore = await startStandIn();
    env = { DATA_DIR: folder, ...clustered(eventStore.url) };
    service = await startService(env);
    ({ key } = service);
  });
  afterAll(async () => {
    await service.stop();
    await eventStore.stop();
  });

  const operator = () => operatorAt(folder, env);
  const get = (path: string): Promise<ApiResponse> => ask(`${service.url}${path}`, { key });
  const rename = (name: string): Promise<ApiResponse> =>
    ask(`${service.url}/tenants/self`, { method: 'PUT', key, body: { name } });

  it('has everything after a restart, including cursors and last uses of keys, even if the disposable folder was lost', async () => {
    expect((await rename('Two')).status).toBe(200);
    const id = String((await get('/tenants/self')).json.id);
    const cursor = String((await get('/logs?entity_type=tenant&size=1')).json.pagination.next);
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
    expect((await rename('Three')).status).toBe(200);
    await until(async () => (await get('/tenants/self')).json.name === 'Three');
    expect((await operator().run('projections verify')).code).toBe(0);
  });

  it('need not wait for the lease of a command that has ended', async () => {
    const own = { ...clustered(eventStore.url), STREAM_PREFIX: 'command.' };
    await operatorAt(folder, own).json('tenant create --name A');
    const { db, close } = await mongoConnection(own.MONGODB_URL, { waitMs: 5_000, onError: () => undefined });
    expect(await db.collection('read_model_leases').countDocuments()).toBe(0);
    await close();
  });

  it('waits at its start for a MongoDB that stops answering, as long as it takes', async () => {
    const mongo = await mongodbBehindProxy();
    const isAsked = { collection: 'read_model_roots', times: 4 };
    mongo.faults.add({ ...isAsked, action: { type: 'hang' } });
    const started = await startService({ ...env, STREAM_PREFIX: 'late.', MONGODB_URL: mongo.url });
    expect(mongo.faults.affected).toBe(4);
    expect((await ask(`${started.url}/tenants/self`, { key: started.key })).status).toBe(200);
    expect(await started.stop()).toBe(0);
  });
});
