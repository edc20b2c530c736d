import { newKey } from '../../src/ledger/new-key';
import { beside, type Beside } from '../support/beside';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { eventsIn } from '../support/operator';
import { startService, type Service } from '../support/service';
import { isolatedTenants, type IsolatedTenant } from '../support/isolated-tenants';

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
  let newTenant: () => Promise<IsolatedTenant>;

  const many = (key: string, path: string, method = 'GET', body: object = { name: 'B' }) =>
    Promise.all(
      Array.from({ length: count }, () =>
        ask(`${service.url}${path}`, { key, method, ...(method.startsWith('P') ? { body } : {}) }),
      ),
    );
  const refusals = async () =>
    (await eventsIn(folder))
      .filter(({ type }) => type === 'AccessRefused')
      .map(({ stream, data }) => ({
        stream: stream.slice(by.streams.prefix.length),
        ...(data as Record<string, unknown>),
      }));

  beforeAll(async () => {
    service = await startService({ DATA_DIR: folder });
    by = await beside(service);
    newTenant = await isolatedTenants(folder);
  });

  it('of every kind is recorded as one fact per key, at the latest when the server stops', async () => {
    const { id: tenantId, callers } = await newTenant();
    const holds = (...held: readonly string[]) =>
      callers.find((caller) => caller.type === 'management' && caller.held.join() === held.join())!;
    const lacking = holds('log:read');
    const other = holds('tenant:read');
    const gone = holds('report:read');
    await by.run('application', 'delete', '--yes', gone.applicationId, '--tenant', tenantId);
    const { revoked, expired } = other.keys;

    await many(lacking.keys.valid.key, '/tenants/self');
    await many(lacking.keys.valid.key, '/tenants/self', 'PUT');
    const creator = holds('application:create');
    const permissions = ['tenant:delete', 'log:read', 'report:read'];
    const wanted = { name: 'B', type: 'management', permissions: ['application:create', ...permissions] };
    await many(creator.keys.valid.key, '/applications', 'POST', wanted);
    await many(revoked.key, '/permissions');
    await many(expired.key, '/tenants/self', 'PUT');
    await many(gone.keys.valid.key, '/tenants/self', 'DELETE');
    await many(`key_${'0'.repeat(55)}`, '/permissions');
    await many(newKey(tenantId).key, '/permissions');
    expect(await refusals()).toEqual([]);

    expect(await service.stop()).toBe(0);
    const found = await refusals();
    const common = { stream: `activity-${tenantId}`, addressCount: 1, addresses: ['127.0.0.1'] };
    expect(found).toHaveLength(5);
    const of = (keyId: string) => found.find((fact) => (fact as { keyId?: string }).keyId === keyId);
    expect(of(lacking.keys.valid.id)).toMatchObject({
      ...common,
      applicationId: lacking.applicationId,
      count: 2 * count,
      faults: ['permission_missing'],
      permissions: ['tenant:read', 'tenant:update'],
    });
    const { applicationId } = other;
    expect(of(creator.keys.valid.id)).toMatchObject({
      ...common,
      count,
      faults: ['permission_missing'],
      permissions,
    });
    expect(of(revoked.id)).toMatchObject({ ...common, applicationId, count, faults: ['revoked'] });
    expect(of(expired.id)).toMatchObject({ ...common, applicationId, count, faults: ['expired'] });
    expect(of(gone.keys.valid.id)).toMatchObject({
      ...common,
      applicationId: gone.applicationId,
      faults: ['application_deleted'],
    });

    service = await startService({ DATA_DIR: folder });
    const query = '/logs?entity_type=application&size=100';
    const { json } = await ask(`${service.url}${query}`, { key: lacking.keys.valid.key });
    const rows = (json.data as Row[]).filter(({ operation }) => operation === 'deny');
    expect(rows).toHaveLength(5);
    expect(rows).toContainEqual(
      expect.objectContaining({
        entity_id: lacking.applicationId,
        actor_id: lacking.applicationId,
        message: `Access refused ${2 * count} times from 1 address: lacks tenant:read, tenant:update`,
      }),
    );
    expect(rows).toContainEqual(
      expect.objectContaining({
        entity_id: applicationId,
        message: `Access refused ${count} times from 1 address: revoked key`,
      }),
    );
  });

  it('with the keys of a deleted tenant is not recorded, so its history stops growing', async () => {
    const before = (await refusals()).length;
    const { callers } = await newTenant();
    const { valid, revoked } = callers.find(
      ({ type, held }) => type === 'management' && held.length > 1,
    )!.keys;
    expect((await ask(`${service.url}/tenants/self`, { key: valid.key, method: 'DELETE' })).status).toBe(204);
    for (const method of ['GET', 'PUT', 'DELETE'])
      for (const key of [valid.key, revoked.key]) {
        const answers = await many(key, '/tenants/self', method);
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
      }
    expect(await service.stop()).toBe(0);
    expect(await refusals()).toHaveLength(before);
  });
});
