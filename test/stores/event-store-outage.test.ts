import { TIMES } from '../../src/times';
import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { ask, rename, type ApiResponse } from '../support/http';
import { describeMongodb } from '../support/mongodb/databases';
import { clustered } from '../support/profile';
import { serviceProcess, startService, type Service } from '../support/service';
import { timed, until } from '../support/waiting';

describeMongodb('a server whose event log is in an event store', () => {
  let store: StandIn;
  let service: Service;
  let env: ReturnType<typeof clustered>;
  beforeAll(async () => {
    store = await startStandIn();
    env = clustered(store.url);
    service = await serviceProcess(env);
    expect((await write('Acme')).status).toBe(200);
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
    await store.stop();
  });

  const read = (): Promise<ApiResponse> => ask(`${service.url}/tenants/self`, { key: service.key });
  const write = (name: string) => rename(service, service.key, name);
  const ready = (): Promise<ApiResponse> => ask(`${service.operationsUrl}/readyz`);

  const expectAway = async (code: string): Promise<void> => {
    const application = { name: 'Not now', type: 'private' };
    const creation = { method: 'POST', key: service.key, body: application };
    for (const change of [() => write('Not now'), () => ask(`${service.url}/applications`, creation)]) {
      const { value: refused, ms } = await timed(change);
      expect(refused).toMatchObject({ status: 503, json: { code } });
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(ms).toBeLessThan(2_000);
    }
    expect(await read()).toMatchObject({ status: 200, json: { name: 'Acme' } });
    expect(await ask(`${service.url}/applications`, { key: service.key })).toMatchObject({
      status: 200,
      json: { pagination: { total_items: 1 } },
    });
    expect(await ready()).toMatchObject({ status: 503, json: { status: 'unavailable' } });
  };
  const expectBack = async (name: string): Promise<void> => {
    await until(async () => (await write(name)).status === 200);
    expect(await read()).toMatchObject({ status: 200, json: { name } });
    expect((await ready()).status).toBe(200);
  };

  it('refuses writes in time while the store is down, still serves reads, reports it, and needs no restart', async () => {
    await store.kill();
    await expectAway('log_unavailable');
    await until(() => service.stderr().includes('"Following the event log failed'));
    await store.restart();
    await expectBack('Acme');
  });

  it('does the same while the store is frozen, but with an unknown outcome', async () => {
    store.gate.freeze();
    await expectAway('outcome_unknown');
    store.gate.thaw();
    await expectBack('Acme');
  });
});

describeMongodb('a server that may read for one second without its log', () => {
  it('does so, then refuses reads until the log is back', async () => {
    const store = await startStandIn();
    const service = await startService(clustered(store.url), { ...TIMES, readsWithoutLogMs: 1_000 });
    const read = () => ask(`${service.url}/tenants/self`, { key: service.key });
    expect((await read()).status).toBe(200);
    await store.kill();
    expect((await read()).status).toBe(200);
    await until(async () => (await read()).status === 503, 5_000, 'a refusal');
    const refused = await read();
    expect(refused.json.code).toBe('log_unavailable');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    await store.restart();
    await until(async () => (await read()).status === 200, 10_000, 'an answer');
    expect(await service.stop()).toBe(0);
    await store.stop();
  });
});
