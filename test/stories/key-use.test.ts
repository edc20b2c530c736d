import { revokeKey } from '../../src/domain/application-keys';
import { deleteApplication } from '../../src/domain/applications';
import { newKey } from '../../src/ledger/api-key';
import { TIMES } from '../../src/times';
import { beside, type Beside, type NewApplication } from '../support/beside';
import { freshFolder } from '../support/folders';
import { ask, type AskOptions } from '../support/http';
import { operatorAt } from '../support/operator';
import { serviceProcess, startService, type Service, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

interface Day {
  readonly date: string;
  readonly operations: Readonly<Record<string, number>>;
}

const TODAY = expect.stringContaining(new Date().toISOString().slice(0, 10));
const AT_ONCE = { ...TIMES, keyUsesMs: 10 };

/** What keys did, from the request to where people look for it. */
describe('what a key did', () => {
  const folder = freshFolder();
  const operator = operatorAt(folder);
  let service: Service;
  let killed: ServiceProcess;
  let by: Beside;
  let tenantId: string;
  let manager: NewApplication;
  let reading: NewApplication;

  const get = (path: string, key: string, more: AskOptions = {}) =>
    ask(`${service.url}${path}`, { key, ...more });
  const usesPath = ({ id, keyId }: NewApplication): string => `/applications/${id}/keys/${keyId}/uses`;
  const usesOf = async (application: NewApplication): Promise<readonly Day[]> =>
    (await get(usesPath(application), manager.key)).json;
  const lastUseOf = async ({ id, keyId }: NewApplication): Promise<string | undefined> =>
    (await get(`/applications/${id}/keys/${keyId}`, manager.key)).json.last_used_at;
  const eventsOf = async (keyId: string) =>
    (await by.events()).filter(
      ({ type, data }) => type === 'KeyUsed' && (data as { keyId: string }).keyId === keyId,
    );
  const rowsOf = async (keyId: string) =>
    (await get(`/logs?entity_id=${keyId}&size=100`, manager.key)).json.data as readonly {
      operation: string;
      message: string;
      actor_id: string;
    }[];

  beforeAll(async () => {
    killed = await serviceProcess({ DATA_DIR: folder });
    service = killed;
    by = await beside(service);
    tenantId = await by.tenantId();
    manager = await by.newApplication(tenantId, 'management', 'application:read', 'log:read');
    reading = await by.newApplication(tenantId, 'management', 'tenant:read', 'log:read');
  });
  afterAll(() => service.stop());

  it('is in the log a moment after its first use of the day: a process that is killed does not lose that', async () => {
    await get('/tenants/self', reading.key);
    const usedAt = await lastUseOf(reading);
    await until(async () => (await eventsOf(reading.keyId)).length === 1);
    await get('/tenants/self', reading.key);
    await killed.kill();
    service = await startService({ DATA_DIR: folder });
    expect(await usesOf(reading)).toMatchObject([{ date: TODAY, operations: { getTenant: 1 } }]);
    expect(await lastUseOf(reading)).toBe(usedAt);
  });

  it('is shown exactly by the instance that served it, and by all once it has stopped', async () => {
    for (let i = 0; i < 3; i += 1) await get('/tenants/self', reading.key);
    await get('/applications', reading.key);
    const stream = await fetch(`${service.url}/events`, { headers: { 'SVC-API-KEY': reading.key } });
    const given = (await stream.text()).trim().split('\n').length - 1;
    const csv = await get('/logs/csv', reading.key);
    const rows = csv.text.trim().split('\r\n').length - 1;
    const expected = {
      date: TODAY,
      operations: { getTenant: 4, listEvents: 1, exportLogs: 1 },
      refusals: { permission_missing: 1 },
      missing_permissions: ['application:read'],
      events_given_out: given + rows,
      first_used_at: TODAY,
      last_used_at: TODAY,
    };
    await until(async () => JSON.stringify(await usesOf(reading)).includes(`_out":${given + rows},`));
    expect(await usesOf(reading)).toEqual([expected]);
    const ofAnother = usesPath({ ...reading, id: manager.id });
    expect((await get(ofAnother, manager.key)).json.code).toBe('key_not_found');
    const usedAt = await lastUseOf(reading);
    const elsewhere = await startService({ DATA_DIR: folder });
    const { json } = await ask(`${elsewhere.url}${usesPath(reading)}`, { key: manager.key });
    expect(json).toMatchObject([{ operations: { getTenant: 1 } }]);

    await service.stop();
    service = elsewhere;
    expect(await usesOf(reading)).toEqual([expected]);
    expect(await lastUseOf(reading)).toBe(usedAt);
    const show = `key show ${reading.keyId} --tenant ${tenantId}`;
    expect(await operator.json(show)).toMatchObject({ key_id: reading.keyId, uses: [expected] });
    const shown = (await operator.run(show)).stdout;
    expect(shown).toContain('permission_missing 1');
    expect(shown.match(/Z \(today, not complete\)/g)).toHaveLength(2);
  });

  it('is found by audit --key and in /logs', async () => {
    const { stdout } = await operator.run(`audit --key ${reading.keyId} --type KeyUsed`);
    const lines = stdout
      .trim()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { data: { operations: { getTenant: 1 } }, metadata: { client: { address: '127.0.0.1' } } },
      { data: { refusals: { permission_missing: 1 } }, actor: { type: 'application', id: reading.id } },
    ]);
    expect((await rowsOf(reading.keyId)).map(({ operation }) => operation)).toEqual([
      'deny',
      'use',
      'create',
    ]);
    const pretty = await operator.run(`audit --key ${reading.keyId} --type KeyUsed --format pretty`);
    expect(pretty.stdout).toContain('Key refused 1 time (lacks application:read), used 5 times, ');
  });

  it('is recorded at once where it was refused, whatever the reason, but not of keys that nobody knows', async () => {
    await service.stop();
    service = await startService({ DATA_DIR: folder }, AT_ONCE);
    const [revoked, gone, creator] = [
      await by.newApplication(tenantId, 'management', 'tenant:read'),
      await by.newApplication(tenantId, 'management', 'tenant:read'),
      await by.newApplication(tenantId, 'management', 'application:create'),
    ];
    await by.write(tenantId, revokeKey(revoked.keyId));
    await by.write(tenantId, deleteApplication(gone.id));
    const before = (await by.events()).length;
    for (const method of ['GET', 'PUT', 'DELETE'])
      for (const { key } of [revoked, gone])
        await until(async () => (await get('/tenants/self', key, { method })).status === 401);
    const permissions = ['application:create', 'tenant:delete', 'log:read'];
    const wanted = { name: 'B', type: 'management', permissions };
    expect((await get('/applications', creator.key, { method: 'POST', body: wanted })).status).toBe(403);
    await get('/permissions', newKey(tenantId).key);
    await get('/permissions', `key_${'0'.repeat(55)}`);
    const first = async ({ keyId }: NewApplication) => (await eventsOf(keyId))[0]?.data;
    await until(async () => (await Promise.all([revoked, gone, creator].map(first))).every(Boolean));
    await service.stop();
    service = await startService({ DATA_DIR: folder });
    expect(await usesOf(revoked)).toMatchObject([{ operations: {}, refusals: { revoked: 3 } }]);
    expect(await first(gone)).toMatchObject({ refusals: { application_deleted: expect.any(Number) } });
    expect(await first(creator)).toMatchObject({ missingPermissions: ['tenant:delete', 'log:read'] });
    expect((await rowsOf(revoked.keyId))[0]).toMatchObject({
      operation: 'deny',
      actor_id: revoked.id,
      message: expect.stringMatching(/^Key refused \d times? \(revoked\) on /),
    });
    const added = (await by.events()).slice(before);
    expect(new Set(added.map(({ stream }) => stream.slice(by.streams.prefix.length)))).toEqual(
      new Set([`activity-${tenantId}`]),
    );
  });

  it('is not recorded of the keys of a deleted tenant, so that its history stops growing', async () => {
    const other = await by.newTenant();
    expect((await get('/tenants/self', other.key, { method: 'DELETE' })).status).toBe(204);
    for (let i = 0; i < 3; i += 1) expect((await get('/tenants/self', other.key)).status).toBe(401);
    await service.stop();
    expect((await eventsOf(other.keyId)).map(({ data }) => data)).toMatchObject([
      { operations: { deleteTenant: 1 }, refusals: {} },
    ]);
    service = await startService({ DATA_DIR: folder, RECORD_CLIENTS: 'false' });
  });

  it('has neither a secret nor, where clients are not recorded, an address', async () => {
    const { key, keyId } = await by.newApplication(tenantId, 'management', 'tenant:read');
    await get('/tenants/self', key);
    await service.stop();
    const events = await eventsOf(keyId);
    expect(events).toHaveLength(1);
    expect(JSON.stringify(events)).not.toMatch(/127\.0\.0\.1|key_[0-9A-Za-z]{10}|[0-9a-f]{64}/);
  });
});
