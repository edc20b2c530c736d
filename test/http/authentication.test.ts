import { randomUUID } from 'node:crypto';
import { newKey } from '../../src/ledger/new-key';
import type { ApplicationType } from '../../src/domain/permissions';
import { beside, type Beside } from '../support/beside';
import { ask, type ApiResponse, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { answersIn, converse, sendRaw } from '../support/raw';
import { startService, type Service } from '../support/service';
import { isolatedTenants, type IsolatedTenant } from '../support/isolated-tenants';
import { until } from '../support/waiting';

describe('authentication', () => {
  let service: Service;
  let by: Beside;
  let tenantId: string;
  let newIsolated: () => Promise<IsolatedTenant>;
  const manager = ({ callers }: IsolatedTenant) =>
    callers.find(({ type, held }) => type === 'management' && held.length > 1)!.keys;
  const call = (path: string, asking: AskOptions = {}) => ask(`${service.url}${path}`, asking);

  beforeAll(async () => {
    service = await startService();
    by = await beside(service);
    tenantId = await by.tenantId();
    newIsolated = await isolatedTenants(service.folder);
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
  });

  /** A 401 without the parts that differ from request to request. */
  const essence = ({ status, json, headers }: ApiResponse) => {
    const { instance: _, trace_id: __, ...rest } = json as Record<string, unknown>;
    const connection = new Set(['connection', 'keep-alive']);
    const names = [...headers.keys()].filter((name) => !connection.has(name)).toSorted();
    return { status, rest, names, challenge: headers.get('www-authenticate') };
  };

  const changed = (key: string, at: number): string =>
    `${key.slice(0, at)}${key[at] === 'a' ? 'b' : 'a'}${key.slice(at + 1)}`;

  describe('401', () => {
    let reference: ReturnType<typeof essence>;
    const refused = (response: ApiResponse): void => {
      expectProblem(response, { status: 401, code: 'key_refused' });
      expect(essence(response)).toEqual(reference);
    };
    beforeAll(async () => {
      reference = essence(await call('/permissions'));
      expect(reference.challenge).toBe('ApiKey realm="tenant-ledger"');
      expect(reference.rest['detail']).toMatch(/^Send a valid API key in the header SVC-API-KEY: /);
    });

    it.each([
      ['GET', '/permissions'],
      ['GET', '/permissions?application_type=wrong'],
      ['GET', '/tenants/self'],
      ['PUT', '/tenants/self'],
      ['DELETE', '/tenants/self'],
      ['GET', '/nowhere'],
      ['POST', '/'],
      ['OPTIONS', '/docs'],
      ['POST', '/tenants/self'],
      ['PATCH', '/permissions'],
      ['OPTIONS', '/permissions'],
      ['OPTIONS', '/nowhere'],
      ['POST', '/problems/not_found'],
      ['OPTIONS', '/problems/not_found'],
      ['GET', '/problems/no_such_code'],
      ['PUT', '/problems/'],
      ['GET', '/openapi.jsonx'],
    ])('%s %s without a key', async (method, path) => {
      const response = await call(path, { method });
      refused(response);
      expect(response.json.instance).toBe(path.split('?')[0]);
      expect(response.headers.get('allow')).toBeNull();
    });

    it('HEAD without a key, headers only', async () => {
      const response = await call('/tenants/self', { method: 'HEAD' });
      expect([response.status, response.text]).toEqual([401, '']);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
      expect(response.headers.get('www-authenticate')).toBe('ApiKey realm="tenant-ledger"');
    });

    it('is sent before the body is looked at', async () => {
      for (const body of ['{bad', 'x'.repeat(100_000)])
        refused(
          await call('/tenants/self', { method: 'PUT', body, headers: { 'Content-Type': 'text/plain' } }),
        );
    });

    it.each<[string, (key: string) => string]>([
      ['empty', () => ''],
      ['nonsense', () => 'nonsense'],
      ['only the prefix', () => 'key_'],
      ['truncated', (key) => key.slice(0, -1)],
      ['longer', (key) => `${key}a`],
      ['in capitals', (key) => key.toUpperCase()],
      ['preceded by Bearer', (key) => `Bearer ${key}`],
      ['in quotes', (key) => `"${key}"`],
      ['repeated in one header', (key) => `${key}, ${key}`],
      ['given a wrong prefix', (key) => key.replace('key_', 'kez_')],
      ['for a tenant number that is not a UUID', (key) => `key_${'z'.repeat(22)}${key.slice(26)}`],
      ['of a tenant that does not exist', () => newKey(randomUUID()).key],
      ['of this tenant but never issued', () => newKey(tenantId).key],
      ['SQL', () => "' OR 1=1 --"],
      ['in accented letters', () => 'clé_é'],
    ])('a key that is %s', async (_, spoil) => {
      const key = spoil(service.key);
      refused(await call('/tenants/self', { key }));
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } }));
      refused(await call('/nowhere', { key }));
    });

    it('a key with any one character changed', async () => {
      for (let at = 0; at < service.key.length; at += 1)
        refused(await call('/permissions', { key: changed(service.key, at) }));
    });

    it('a key sent twice, even if both are equal', async () => {
      const header = `SVC-API-KEY: ${service.key}\r\n`;
      const bytes = `GET /permissions HTTP/1.1\r\nHost: x\r\n${header}${header}Connection: close\r\n\r\n`;
      refused((await sendRaw(service.url, bytes))[0]!);
    });

    it('a key in the wrong place', async () => {
      refused(await call(`/permissions?SVC-API-KEY=${service.key}`));
      refused(await call('/permissions', { headers: { 'BT-API-KEY': service.key } }));
      refused(await call('/permissions', { headers: { Authorization: `ApiKey ${service.key}` } }));
    });

    it('a revoked key: at once for writes, and for reads as soon as this server has seen the revocation', async () => {
      const { key, keyId, tenantId: tenant, id } = await by.newTenant();
      const other = await by.run('key', 'create', '--tenant', tenant, '--application', id);
      expect((await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } })).status).toBe(200);
      await by.run('key', 'revoke', keyId, '--tenant', tenant);
      const events = await by.count();
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'C' } }));
      refused(await call('/tenants/self', { key }));
      refused(await call('/tenants/self', { key, method: 'DELETE' }));
      refused(await call('/permissions', { key }));
      expect(await by.count()).toBe(events);
      expect((await call('/tenants/self', { key: other['key']! })).json.name).toBe('B');
    });

    it('an expired key, from the moment of its expiry', async () => {
      const { tenantId: tenant, id } = await by.newTenant();
      const expires = new Date(Date.now() + 3_000).toISOString();
      const options = ['--tenant', tenant, '--application', id, '--expires', expires];
      const { key } = (await by.run('key', 'create', ...options)) as { key: string };
      const early = await call('/permissions', { key });
      expect([early.status, Date.now() < Date.parse(expires)]).toEqual([200, true]);
      await until(() => Date.now() > Date.parse(expires));
      const events = await by.count();
      refused(await call('/permissions', { key }));
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } }));
      expect(await by.count()).toBe(events);
    });

    it('a key that expires while an unusable body arrives', async () => {
      const { tenantId: tenant, id } = await by.newTenant();
      const expires = new Date(Date.now() + 3_000).toISOString();
      const options = ['--tenant', tenant, '--application', id, '--expires', expires];
      const { key } = await by.run<{ key: string }>('key', 'create', ...options);
      const { socket, received, closed } = converse(service.url);
      const head = `PUT /tenants/self HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSVC-API-KEY: ${key}\r\n`;
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{`);
      await until(() => Date.now() > Date.parse(expires));
      socket.write('!');
      await closed;
      const [response] = answersIn(received());
      refused(response!);
    });

    it('the key of a deleted Application', async () => {
      const { id, key } = await by.newApplication(tenantId, 'management', 'tenant:read', 'tenant:update');
      expect((await call('/tenants/self', { key })).status).toBe(200);
      await by.run('application', 'delete', '--yes', id, '--tenant', tenantId);
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } }));
      refused(await call('/tenants/self', { key }));
    });

    it('the key of a tenant deleted by the operator', async () => {
      const { key, tenantId: tenant } = await by.newTenant();
      expect((await call('/tenants/self', { key })).status).toBe(200);
      await by.run('tenant', 'delete', '--yes', tenant);
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } }));
      refused(await call('/tenants/self', { key }));
      refused(await call('/nowhere', { key }));
    });

    it.each([
      ['POST', '/nowhere', {}],
      ['DELETE', '/permissions', {}],
      ['PUT', '/tenants/self', { body: '{bad' }],
      ['PUT', '/tenants/self', { body: 'x', headers: { 'Content-Type': 'text/plain' } }],
      ['PUT', '/tenants/self', { body: { name: 'B' }, headers: { 'If-Match': 'unquoted' } }],
    ])('a revoked key, whatever else is wrong with %s %s', async (method, path, asking) => {
      const { key, keyId, tenantId: tenant } = await by.newTenant();
      expect((await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } })).status).toBe(200);
      expect([400, 404, 405, 415]).toContain((await call(path, { key, method, ...asking })).status);
      await by.run('key', 'revoke', keyId, '--tenant', tenant);
      refused(await call(path, { key, method, ...asking }));
      await until(async () => (await call('/tenants/self', { key })).status === 401, 1_000, 'a refusal');
    });

    it('takes about as long for an unknown, an expired, a revoked key and one of a deleted tenant', async () => {
      const [there, gone] = [await newIsolated(), await newIsolated()];
      await call('/tenants/self', { key: manager(gone).valid.key, method: 'DELETE' });
      const keys = {
        unknown: newKey(there.id).key,
        nobody: newKey(randomUUID()).key,
        expired: manager(there).expired.key,
        revoked: manager(there).revoked.key,
        gone: manager(gone).valid.key,
      };
      const times = new Map(Object.keys(keys).map((name) => [name, [] as number[]]));
      for (let round = 0; round < 40; round += 1)
        for (const [name, one] of Object.entries(keys)) {
          const startedAt = performance.now();
          refused(await call('/tenants/self', { key: one }));
          times.get(name)?.push(performance.now() - startedAt);
        }
      const medians = [...times.values()].map((all) => all.toSorted((a, b) => a - b)[20]!);
      expect(Math.max(...medians)).toBeLessThan(3 * Math.min(...medians) + 1);
    });

    it('states its reason in the log, and nowhere else', async () => {
      const [there, gone] = [await newIsolated(), await newIsolated()];
      await call('/tenants/self', { key: manager(gone).valid.key, method: 'DELETE' });
      const { id, key: ofDeleted } = await by.newApplication(there.id, 'management', 'tenant:read');
      await by.run('application', 'delete', '--yes', id, '--tenant', there.id);
      const keys: Readonly<Record<string, string | undefined>> = {
        missing: undefined,
        malformed: changed(service.key, 30),
        unknown: newKey(tenantId).key,
        expired: manager(there).expired.key,
        revoked: manager(there).revoked.key,
        application_deleted: ofDeleted,
        tenant_deleted: manager(gone).valid.key,
      };
      for (const [reason, key] of Object.entries(keys))
        for (const asking of [{}, { method: 'PUT', body: { name: 'B' } }]) {
          const trace = `reason-${randomUUID()}`;
          const headers = { 'SVC-TRACE-ID': trace };
          refused(await call('/tenants/self', { ...asking, ...(key === undefined ? {} : { key }), headers }));
          const line = () =>
            service
              .stderr()
              .split('\n')
              .find((text) => text.includes(trace)) ?? '';
          await until(() => line() !== '');
          expect(JSON.parse(line())).toMatchObject({ status: 401, reason, application_id: null });
        }
    });
  });

  describe('403', () => {
    /**
     * A request that passes the permission check is refused one step later, so that nothing changes: 200 here means
     * "allowed".
     */
    const endpoints = [
      { method: 'GET', path: '/permissions', permission: undefined, passed: 200, asking: {} },
      { method: 'GET', path: '/tenants/self', permission: 'tenant:read', passed: 200, asking: {} },
      { method: 'HEAD', path: '/tenants/self', permission: 'tenant:read', passed: 200, asking: {} },
      {
        method: 'PUT',
        path: '/tenants/self',
        permission: 'tenant:update',
        passed: 400,
        asking: { body: {} },
      },
      {
        method: 'DELETE',
        path: '/tenants/self',
        permission: 'tenant:delete',
        passed: 412,
        asking: { headers: { 'If-Match': '"999"' } },
      },
    ];
    const everyTenantPermission = ['tenant:read', 'tenant:update', 'tenant:delete'];
    const others = ['report:read', 'log:read', 'tenant:member:read', 'application:update'];
    const callers: readonly [string, ApplicationType, readonly string[]][] = [
      ['management with all', 'management', [...everyTenantPermission, ...others]],
      ['management with the others', 'management', others],
      ['management with none', 'management', []],
      ['management with tenant:read', 'management', ['tenant:read']],
      ['management with tenant:update', 'management', ['tenant:update']],
      ['management with tenant:delete', 'management', ['tenant:delete']],
      ['public', 'public', ['token:create', 'token:update']],
      ['private', 'private', ['token:create', 'token:read', 'token:use', 'token:delete']],
    ];

    it.each(callers)('%s: every endpoint', async (_, type, held) => {
      const { key } = await by.newApplication(tenantId, type, ...held);
      const events = await by.count();
      for (const { method, path, permission, passed, asking } of endpoints) {
        const response = await call(path, { key, method, ...asking });
        if (permission === undefined || held.includes(permission)) expect(response.status).toBe(passed);
        else if (method === 'HEAD') expect([response.status, response.text]).toEqual([403, '']);
        else {
          const more = ['required_permission', 'application_type', 'assignable'];
          expectProblem(response, { status: 403, code: 'permission_missing', instance: path, more });
          expect(response.json).toMatchObject({
            required_permission: permission,
            application_type: type,
            assignable: type === 'management',
          });
        }
      }
      expect(await by.count()).toBe(events);
    });

    it('is sent for a permission that is held but not assignable to the type', async () => {
      const stream = `tenant-${tenantId}`;
      const { key, input } = newKey(tenantId);
      const applicationId = randomUUID();
      const last = (await by.events()).findLast((event) => event.stream === stream)!.revision;
      const data = {
        applicationId,
        name: 'Sly',
        applicationType: 'public',
        permissions: everyTenantPermission,
      };
      await by.log.append(
        stream,
        [
          { id: randomUUID(), type: 'ApplicationCreated', data, metadata: {} },
          {
            id: randomUUID(),
            type: 'KeyAdded',
            data: { keyId: input.keyId, applicationId, digest: input.digest },
            metadata: {},
          },
        ],
        last,
      );
      await until(async () => (await call('/permissions', { key })).status === 200);
      for (const asking of [
        { method: 'GET' },
        { method: 'PUT', body: { name: 'B' } },
        { method: 'DELETE' },
      ]) {
        const { status, json } = await call('/tenants/self', { key, ...asking });
        expect([status, json.assignable, json.application_type]).toEqual([403, false, 'public']);
      }
    });

    it('takes effect when permissions change: at once for writes, within a second for reads', async () => {
      const { id, key } = await by.newApplication(tenantId, 'management', ...everyTenantPermission);
      await by.run('application', 'set-permissions', id, '--tenant', tenantId);
      expect((await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } })).status).toBe(403);
      await until(async () => (await call('/tenants/self', { key })).status === 403, 1_000, 'a refusal');
      await by.run(
        'application',
        'set-permissions',
        id,
        '--tenant',
        tenantId,
        '--permission',
        'tenant:update',
      );
      expect((await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } })).status).toBe(200);
    });

    it('is sent after the route was found and before the body is looked at', async () => {
      const { key } = await by.newApplication(tenantId, 'public', 'token:create');
      expect((await call('/nowhere', { key })).status).toBe(404);
      expect((await call('/tenants/self', { key, method: 'POST' })).status).toBe(405);
      expect((await call('/tenants/self', { key, method: 'PUT', body: '{bad' })).status).toBe(403);
      expect((await call('/tenants/self', { key, method: 'OPTIONS' })).status).toBe(204);
    });
  });
});
