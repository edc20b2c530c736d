import { revokeKey } from '../../src/domain/application-keys';
import { beside, type Beside, type NewApplication } from '../support/beside';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { openAppIn } from '../support/profile';
import { operatorAt } from '../support/operator';
import { serviceProcess, startService, type Service, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

interface Day {
  readonly date: string;
  readonly operations: Readonly<Record<string, number>>;
  readonly failed: number;
  readonly events_given_out: number;
}

const DAY_MS = 86_400_000;
const daysAgo = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString();
const dateOf = (at: string): string => at.slice(0, 10);

/** What a key was used for, from the request to where people look for it. */
describe('what a key was used for', () => {
  const folder = freshFolder();
  const operator = operatorAt(folder);
  let service: Service;
  let killed: ServiceProcess;
  let by: Beside;
  let tenantId: string;
  let manager: NewApplication;
  let reading: NewApplication;

  const get = (path: string, key: string) => ask(`${service.url}${path}`, { key });
  const usesPath = ({ id, keyId }: NewApplication): string => `/applications/${id}/keys/${keyId}/uses`;
  const usesOf = async (application: NewApplication): Promise<readonly Day[]> =>
    (await get(usesPath(application), manager.key)).json;

  beforeAll(async () => {
    killed = await serviceProcess({ DATA_DIR: folder });
    service = killed;
    by = await beside(service);
    tenantId = await by.tenantId();
    manager = await by.newApplication(tenantId, 'management', 'application:read', 'log:read', 'report:read');
    reading = await by.newApplication(tenantId, 'management', 'tenant:read', 'log:read');
  });
  afterAll(() => service.stop());

  it('is stored within a moment or, if more follows, a minute: a process that is killed loses no more', async () => {
    expect(await usesOf(reading)).toEqual([]);
    await get('/tenants/self', reading.key);
    await until(async () => (await usesOf(reading)).length === 1);
    await killed.kill();
    service = await startService({ DATA_DIR: folder });
    expect(await usesOf(reading)).toMatchObject([{ operations: { getTenant: 1 }, failed: 0 }]);
  });

  it('is shown for today beside the key and by key show', async () => {
    for (let i = 0; i < 3; i += 1) await get('/tenants/self', reading.key);
    await get('/applications', reading.key);
    await get('/nothing', reading.key);
    await ask(`${service.url}/tenants/self`, { key: reading.key, method: 'OPTIONS' });
    const stream = await fetch(`${service.url}/events`, { headers: { 'SVC-API-KEY': reading.key } });
    const given = (await stream.text()).trim().split('\n').length - 1;
    expect(given).toBeGreaterThan(3);
    await service.stop();
    service = await startService({ DATA_DIR: folder });
    const uses = await usesOf(reading);
    const [today] = uses;
    expect(uses).toEqual([
      {
        date: dateOf(daysAgo(0)),
        operations: { getTenant: 4, listEvents: 1, options: 1 },
        failed: 2,
        events_given_out: given,
        first_used_at: expect.stringContaining(today!.date),
        last_used_at: expect.stringContaining(today!.date),
      },
    ]);

    const show = (keyId: string): string => `key show ${keyId} --tenant ${tenantId}`;
    expect(await operator.json(show(reading.keyId))).toMatchObject({ key_id: reading.keyId, uses });
    const { stdout } = await operator.run(show(reading.keyId));
    expect(stdout).toContain('getTenant 4, ');
    const unused = await operator.run(show(manager.keyId.replace(/^./, (c) => (c === 'a' ? 'b' : 'a'))));
    expect([unused.code, unused.stderr]).toEqual([1, expect.stringContaining('has no key')]);
  });

  it('on earlier days becomes one event per day, which audit --key, /logs and key show find', async () => {
    const report = (await get('/tenants/self/reports/usage', manager.key)).json;
    await service.stop();
    const app = await openAppIn(folder);
    for (const days of [45, 3, 2])
      for (let i = 0; i < days; i += 1)
        app.keyUses.used({
          tenantId,
          applicationId: reading.id,
          keyId: reading.keyId,
          at: daysAgo(days),
          address: '192.0.2.1',
          what: i === 0 ? { eventsGivenOut: 70 } : { operation: 'listLogs' },
        });
    await app.close();
    service = await startService({ DATA_DIR: folder });
    const dates = [45, 3, 2].map((days) => dateOf(daysAgo(days)));
    const found = async () => {
      const { stdout } = await operator.run(`audit --key ${reading.keyId} --type KeyUsed`);
      const lines = stdout.split('\n').filter((line) => line.startsWith('{"id"'));
      return lines.map((line) => JSON.parse(line) as { data: Day; metadata: Record<string, unknown> });
    };
    await until(async () => (await found()).length === 3);
    const events = await found();
    expect(events.map(({ data }) => data.date)).toEqual(dates);
    expect(events[1]).toMatchObject({
      data: { operations: { listLogs: 2 }, eventsGivenOut: 70 },
      metadata: { client: { address: '192.0.2.1' } },
    });
    const { stderr } = await operator.run(`audit --key ${reading.keyId}`);
    expect(stderr).toContain('summed up per UTC day');

    const rows = async () => (await get(`/logs?entity_id=${reading.keyId}&size=2`, manager.key)).json.data;
    await until(async () => (await rows())[0].operation === 'use');
    expect(await rows()).toMatchObject([
      {
        entity_type: 'key',
        operation: 'use',
        actor_id: reading.id,
        message: `Key used 1 time on ${dates[2]}, 70 events given out`,
      },
      { message: `Key used 2 times on ${dates[1]}, 70 events given out` },
    ]);
    const uses = await usesOf(reading);
    expect(uses.map(({ date }) => date)).toEqual([dateOf(daysAgo(0)), dates[2], dates[1]]);
    const shown = await operator.json<{ uses: Day[] }>(`key show ${reading.keyId} --tenant ${tenantId}`);
    expect(shown.uses).toEqual(uses);
    const pretty = await operator.run(`audit --key ${reading.keyId} --type KeyUsed --format pretty`);
    expect(pretty.stdout).toContain(`Key used 2 times on ${dates[1]}`);
    expect((await get('/tenants/self/reports/usage', manager.key)).json).toEqual(report);
  });

  it('is shown of a revoked key too, but to nobody else', async () => {
    const before = await usesOf(reading);
    await by.write(tenantId, revokeKey(reading.keyId));
    await until(async () => (await get('/permissions', reading.key)).status === 401);
    expect((await usesOf(reading)).slice(1)).toEqual(before.slice(1));
    const other = await by.newTenant();
    const foreign = await by.newApplication(other.tenantId, 'management', 'application:read');
    for (const [path, key] of [
      [usesPath(reading), foreign.key],
      [usesPath({ ...reading, id: manager.id }), manager.key],
      [usesPath({ ...reading, keyId: 'none' }), manager.key],
      [usesPath({ ...reading, id: 'none' }), manager.key],
    ] as const)
      expect((await get(path, key)).status).toBe(404);
  });
});
