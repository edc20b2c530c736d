import { randomUUID } from 'node:crypto';
import { newKey } from '../../src/ledger/api-key';
import { besideForTests } from '../support/beside';
import { ask, type ApiResponse, type AskOptions } from '../support/http';
import { isolatedTenants, type IsolatedTenant } from '../support/isolated-tenants';
import { expectProblem } from '../support/problem';
import { answersIn, converse, sendRaw } from '../support/raw';
import { loggedBy, serviceForTests } from '../support/service';
import { until } from '../support/waiting';

describe('authentication', () => {
  const service = serviceForTests();
  const by = besideForTests(service);
  let tenantId: string;
  let newIsolated: () => Promise<IsolatedTenant>;
  const manager = ({ callers }: IsolatedTenant) =>
    callers.find(({ type, held }) => type === 'management' && held.length > 1)!.keys;
  const call = (path: string, asking: AskOptions = {}) => ask(`${service.url}${path}`, asking);

  beforeAll(async () => {
    tenantId = await by.tenantId();
    newIsolated = await isolatedTenants(service.folder);
  });

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
      expectProblem(response, 401, 'key_refused');
      expect(essence(response)).toEqual(reference);
    };
    beforeAll(async () => {
      reference = essence(await call('/permissions'));
      expect(reference.challenge).toBe('ApiKey realm="tenant-ledger"');
      expect(reference.rest['detail']).toMatch(/^Send a valid API key in the header SVC-API-KEY: /);
    });

    it('says where a key belongs that was sent as a bearer token', async () => {
      const { key } = service;
      for (const scheme of ['Bearer', 'ApiKey'])
        expect(await call('/permissions', { headers: { Authorization: `${scheme} ${key}` } })).toMatchObject({
          status: 401,
          json: {
            code: 'key_refused',
            detail: expect.stringMatching(
              /^Send a valid API key in the header SVC-API-KEY, not in Authorization: /,
            ),
          },
        });
      expect((await call('/permissions', { key, headers: { Authorization: 'Bearer x' } })).status).toBe(200);
    });

    it.each([
      ['GET', '/permissions'],
      ['GET', '/permissions?application_type=wrong'],
      ['DELETE', '/tenants/self'],
    ])('%s %s without a key', async (method, path) => {
      const response = await call(path, { method });
      refused(response);
      expect(response.json.instance).toBe(path.split('?')[0]);
      expect(response.headers.get('allow')).toBeNull();
    });

    it('is sent after the route was found: what exists is described publicly', async () => {
      const answers = [];
      for (const [method, path] of [
        ['GET', '/nowhere'],
        ['GET', '/problems/no_such_code'],
        ['GET', '/openapi.jsonx'],
        ['PATCH', '/tenants/self'],
        ['OPTIONS', '/tenants/self'],
      ] as const) {
        const { status, headers } = await call(path, { method });
        answers.push([status, headers.get('allow')]);
      }
      const allow = 'DELETE, GET, HEAD, OPTIONS, PUT';
      expect(answers).toEqual([
        [404, null],
        [404, null],
        [404, null],
        [405, allow],
        [204, allow],
      ]);
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
      ['preceded by Bearer', (key) => `Bearer ${key}`],
      ['repeated in one header', (key) => `${key}, ${key}`],
      ['of a tenant that does not exist', () => newKey(randomUUID()).key],
      ['of this tenant but never issued', () => newKey(tenantId).key],
      ['in accented letters', () => 'clé_é'],
    ])('a key that is %s', async (_, spoil) => {
      const key = spoil(service.key);
      refused(await call('/tenants/self', { key }));
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } }));
      expect((await call('/nowhere', { key })).status).toBe(404);
    });

    it('a key sent twice, even if both are equal', async () => {
      const header = `SVC-API-KEY: ${service.key}\r\n`;
      const bytes = `GET /permissions HTTP/1.1\r\nHost: x\r\n${header}${header}Connection: close\r\n\r\n`;
      refused((await sendRaw(service.url, bytes))[0]!);
    });

    it('a key in the wrong place', async () => {
      refused(await call(`/permissions?SVC-API-KEY=${service.key}`));
      refused(await call('/permissions', { headers: { 'BT-API-KEY': service.key } }));
    });

    it('a key from the moment of its expiry, also if its body arrives until then', async () => {
      const { tenantId: tenant, id } = await by.newTenant();
      const expires = new Date(Date.now() + 4_000).toISOString();
      const options = ['--tenant', tenant, '--application', id, '--expires', expires];
      const { key } = await by.run<{ key: string }>('key', 'create', ...options);
      const early = await call('/permissions', { key });
      expect([early.status, Date.now() < Date.parse(expires)]).toEqual([200, true]);
      const { socket, received, closed } = converse(service.url);
      const head = `PUT /tenants/self HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSVC-API-KEY: ${key}\r\n`;
      socket.write(`${head}Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{"name":"B"`);
      await until(() => Date.now() > Date.parse(expires));
      socket.write('}');
      await closed;
      refused(answersIn(received())[0]!);
      const events = await by.count();
      refused(await call('/permissions', { key }));
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } }));
      expect(await by.count()).toBe(events);
    });

    it('a revoked key, and once that was seen, whatever else is wrong with the request', async () => {
      const { key, keyId, tenantId: tenant } = await by.newTenant();
      const wrong: readonly [string, string, AskOptions, number][] = [
        ['PUT', '/tenants/self', { body: '{bad' }, 400],
        ['PUT', '/tenants/self', { body: 'x', headers: { 'Content-Type': 'text/plain' } }, 415],
        ['PUT', '/tenants/self', { body: { name: 'B' }, headers: { 'If-Match': 'unquoted' } }, 400],
      ];
      for (const [method, path, asking, status] of wrong)
        expect((await call(path, { key, method, ...asking })).status).toBe(status);
      await by.run('key', 'revoke', keyId, '--tenant', tenant);
      refused(await call('/tenants/self', { key, method: 'PUT', body: { name: 'B' } }));
      for (const [method, path, asking] of wrong) refused(await call(path, { key, method, ...asking }));
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
          await until(() => loggedBy(service, trace).length > 0);
          expect(loggedBy(service, trace)[0]).toMatchObject({ status: 401, reason, application_id: null });
        }
    });
  });

  /** Who may call what is the matrix of `stores/isolation`. */
  it('403 names the permission, and is sent after the route was found and before the body is looked at', async () => {
    const { key } = await by.newApplication(tenantId, 'public', 'token:create');
    const missing = await call('/tenants/self', { key });
    expectProblem(missing, 403, 'permission_missing');
    const head = await call('/tenants/self', { key, method: 'HEAD' });
    expect([head.status, head.text]).toEqual([403, '']);
    expect((await call('/nowhere', { key })).status).toBe(404);
    expect((await call('/tenants/self', { key, method: 'POST' })).status).toBe(405);
    expect((await call('/tenants/self', { key, method: 'PUT', body: '{bad' })).status).toBe(403);
    expect((await call('/tenants/self', { key, method: 'OPTIONS' })).status).toBe(204);
  });
});
