import type { Finding } from '../../src/app/doctor';
import { partialDamages, wholeDamages } from '../support/damage';
import { ask } from '../support/http';
import { operatorAt } from '../support/operator';
import { expectProblem } from '../support/problem';
import { EMBEDDED } from '../support/profile';
import { allProjected, commandProcess, serviceProcess, type ServiceProcess } from '../support/service';
import { liveSetFile } from '../support/set-files';
import { until } from '../support/waiting';

const COMMAND = 'tenant-ledger projections rebuild';

describe('damaged read models', () => {
  let service: ServiceProcess;
  beforeAll(async () => {
    service = await serviceProcess(EMBEDDED);
    for (const name of ['A', 'B', 'C']) expect((await rename(name)).status).toBe(200);
  });
  afterAll(async () => {
    await service.stop();
  });

  const get = (path: string) => ask(`${service.url}${path}`, { key: service.key });
  const rename = (name: string) =>
    ask(`${service.url}/tenants/self`, { method: 'PUT', key: service.key, body: { name } });
  const health = () => ask(`${service.operationsUrl}/readyz`);
  const shown = async () => {
    const paths = ['/tenants/self', '/logs?size=100&entity_type=tenant', '/tenants/self/reports/usage'];
    return Promise.all(paths.map(async (path) => (await get(path)).json as unknown));
  };
  const startAgain = async (): Promise<void> => {
    const { folder, key } = service;
    service = { ...(await serviceProcess({ ...EMBEDDED, DATA_DIR: folder })), key };
  };
  const operator = () => operatorAt(service.folder, EMBEDDED, commandProcess);
  const problems = async () => {
    const { stdout } = await operator().run('doctor --json');
    return (JSON.parse(stdout) as Finding[]).filter(({ status }) => status === 'problem');
  };
  /** Stops the service, so that everything is in the file and nothing in its `-wal`. */
  const stopped = async (): Promise<string> => {
    await allProjected(service);
    await service.stop();
    return liveSetFile(service.folder);
  };

  it.each(Object.keys(wholeDamages))('are built again by the next start: %s', async (how) => {
    const before = await shown();
    wholeDamages[how]?.(await stopped());
    await startAgain();
    expect(await shown()).toEqual(before);
    expect((await health()).status).toBe(200);
    expect(await problems()).toEqual([]);
  });

  it.each(Object.keys(partialDamages))(
    'are not read, which the answer says, and are rebuilt beside the running service: %s',
    async (how) => {
      const before = await shown();
      partialDamages[how]?.(await stopped());
      await startAgain();
      const read = await get('/tenants/self');
      expectProblem(read, { status: 503, code: 'read_models_unavailable' });
      expect(read.text).not.toMatch(/\.db|SQL|malformed|no such/i);
      const logged = () => service.stderr().includes(liveSetFile(service.folder));
      await until(logged, 5_000, 'the reason in the log');
      expect(await operator().json<unknown>('projections rebuild')).toMatchObject({ differences: null });
      expect(await shown()).toEqual(before);
    },
  );

  it('accept writes if their file is deleted beside the running service, which is not ready until they are rebuilt', async () => {
    wholeDamages['deleted']?.(liveSetFile(service.folder));
    const written = await rename('Kept');
    expect([written.status, written.headers.get('svc-read-pending')]).toEqual([200, 'true']);
    expectProblem(await get('/tenants/self'), { status: 503, code: 'read_models_unavailable' });
    const { status, json } = await health();
    expect([status, json.reason]).toEqual([503, expect.stringContaining(COMMAND)]);
    expect(await problems()).toMatchObject([
      { check: 'read models', fix: expect.stringContaining('projections rebuild') },
    ]);
    await operator().json('projections rebuild');
    expect((await get('/tenants/self')).json.name).toBe('Kept');
    expect((await health()).status).toBe(200);
    const again = await rename('Again');
    expect([again.status, again.headers.get('svc-read-pending')]).toEqual([200, null]);
  });
});
