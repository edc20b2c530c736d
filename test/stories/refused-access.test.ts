import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { beside, type Beside } from '../support/beside';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { eventsIn } from '../support/operator';
import { startService, type Service } from '../support/service';
import { until } from '../support/until';

interface Row {
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  readonly actor_id: string;
}

/** Refused access, from the request to the tenant's own log. */
describe('refused access', () => {
  const folder = freshFolder();
  const count = 40;
  let service: Service;
  let by: Beside;

  const many = (key: string, path: string, method = 'GET') =>
    Promise.all(
      Array.from({ length: count }, () =>
        ask(`${service.url}${path}`, { key, method, ...(method === 'PUT' ? { body: { name: 'B' } } : {}) }),
      ),
    );
  const refusals = async () =>
    (await eventsIn(folder))
      .filter(({ type }) => type === 'AccessRefused')
      .map(({ stream, data }) => ({ stream, ...(data as Record<string, unknown>) }));

  beforeAll(async () => {
    service = await startService({ DATA_DIR: folder });
    by = await beside(service);
  });

  it('of every kind is one fact per key, written at the latest when the server stops', async () => {
    const { tenantId, id, key: reader } = await by.newTenant();
    const lacking = await by.newApplication(tenantId, 'management', 'log:read');
    const revoked = await by.run('key', 'create', '--tenant', tenantId, '--application', id);
    const expires = new Date(Date.now() + 2_000).toISOString();
    const options = ['--tenant', tenantId, '--application', id, '--expires', expires];
    const expired = await by.run('key', 'create', ...options);
    const gone = await by.newApplication(tenantId, 'management', 'tenant:read');
    await by.run('key', 'revoke', revoked['key_id']!, '--tenant', tenantId);
    await by.run('application', 'delete', gone.id, '--tenant', tenantId);
    await until(() => Date.now() > Date.parse(expires));
    await until(async () => (await ask(`${service.url}/permissions`, { key: gone.key })).status === 401);

    await many(lacking.key, '/tenants/self');
    await many(lacking.key, '/tenants/self', 'PUT');
    await many(revoked['key']!, '/permissions');
    await many(expired['key']!, '/tenants/self', 'PUT');
    await many(gone.key, '/tenants/self', 'DELETE');
    const unknown = `key_${'0'.repeat(55)}`;
    await many(unknown, '/permissions');
    expect(await refusals()).toEqual([]);

    expect(await service.stop()).toBe(0);
    const found = await refusals();
    const common = { stream: `activity-${tenantId}`, addressCount: 1, addresses: ['127.0.0.1'] };
    expect(found).toHaveLength(4);
    const of = (keyId: string) => found.find((fact) => (fact as { keyId?: string }).keyId === keyId);
    expect(of(lacking.keyId)).toMatchObject({
      ...common,
      applicationId: lacking.id,
      count: 2 * count,
      faults: ['permission_missing'],
      permissions: ['tenant:read', 'tenant:update'],
    });
    expect(of(revoked['key_id']!)).toMatchObject({
      ...common,
      applicationId: id,
      count,
      faults: ['revoked'],
    });
    expect(of(expired['key_id']!)).toMatchObject({ ...common, count, faults: ['expired'] });
    expect(of(gone.keyId)).toMatchObject({
      ...common,
      applicationId: gone.id,
      faults: ['application_deleted'],
    });

    service = await startService({ DATA_DIR: folder });
    const query = '/logs?entity_type=application&size=100';
    const { json } = await ask(`${service.url}${query}`, { key: lacking.key });
    const rows = (json.data as Row[]).filter(({ operation }) => operation === 'deny');
    expect(rows).toHaveLength(4);
    expect(rows).toContainEqual(
      expect.objectContaining({
        entity_id: lacking.id,
        actor_id: lacking.id,
        message: `Access refused ${2 * count} times from 1 address: lacks tenant:read, tenant:update`,
      }),
    );
    expect(rows).toContainEqual(
      expect.objectContaining({
        entity_id: id,
        message: `Access refused ${count} times from 1 address: revoked key`,
      }),
    );
    expect((await ask(`${service.url}/tenants/self`, { key: reader })).status).toBe(200);
  });

  it('to the keys of a deleted tenant is not recorded: its history does not grow for ever', async () => {
    const before = (await refusals()).length;
    const { tenantId, id, key } = await by.newTenant();
    const revoked = await by.run('key', 'create', '--tenant', tenantId, '--application', id);
    await by.run('key', 'revoke', revoked['key_id']!, '--tenant', tenantId);
    await ask(`${service.url}/tenants/self`, { key, method: 'DELETE' });
    for (const method of ['GET', 'PUT', 'DELETE'])
      for (const one of [key, revoked['key']!]) {
        const answers = await many(one, '/tenants/self', method);
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
      }
    expect(await service.stop()).toBe(0);
    expect(await refusals()).toHaveLength(before);
  });

  it('neither waits for the log nor fails with it', async () => {
    service = await startService({ DATA_DIR: folder });
    const { tenantId } = await by.newTenant();
    const { key } = await by.newApplication(tenantId, 'public', 'token:create');
    const before = (await refusals()).length;
    const db = new DatabaseSync(join(folder, 'events.db'), { timeout: 5_000 });
    db.exec('BEGIN IMMEDIATE');
    const began = Date.now();
    const answers = await many(key, '/tenants/self');
    expect(Date.now() - began).toBeLessThan(1_500);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([403]));
    const stopped = service.stop();
    await until(() => service.stderr().includes('stopping'));
    db.exec('ROLLBACK');
    db.close();
    expect(await stopped).toBe(0);
    expect((await refusals()).slice(before)).toMatchObject([{ count, permissions: ['tenant:read'] }]);
  });
});
