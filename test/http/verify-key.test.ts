import { randomUUID } from 'node:crypto';
import { addKey, revokeKey } from '../../src/domain/application-keys';
import { deleteApplication, updateApplication } from '../../src/domain/applications';
import { deleteTenant } from '../../src/domain/tenant';
import { digestOf, makeKey, newKey } from '../../src/ledger/api-key';
import { TIMES } from '../../src/times';
import { beside, besideForTests, type NewApplication } from '../support/beside';
import { ask } from '../support/http';
import { expectProblem } from '../support/problem';
import { newService } from '../support/services';
import { serviceForTests, startService } from '../support/service';
import { until } from '../support/waiting';

type Made = NewApplication & { readonly tenantId: string };

describe('verified keys', () => {
  const service = serviceForTests({}, { ...TIMES, keyUsesMs: 10 });
  const by = besideForTests(service);
  let caller: string;
  let made: Made;
  const newKeyOf = async (): Promise<Made> => {
    const { tenantId } = await by.newTenant();
    return { tenantId, ...(await by.newApplication(tenantId, 'private', 'token:read', 'token:use')) };
  };
  beforeAll(async () => {
    caller = (await newService(by, 'verify')).key;
    made = await newKeyOf();
  });

  const verify = (body: unknown, key = caller) =>
    ask(`${service.url}/keys/verify`, { method: 'POST', key, body });
  const check = (sent: string | undefined, query = '', key = caller) =>
    ask(`${service.url}/keys/verify${query}`, {
      key,
      headers: sent === undefined ? {} : { 'SVC-VERIFY-KEY': sent },
    });

  it('say whose they are and what they may', async () => {
    const { status, json } = await verify({ key: made.key });
    expect([status, json]).toEqual([
      200,
      {
        valid: true,
        tenant_id: made.tenantId,
        application_id: made.id,
        application_type: 'private',
        key_id: made.keyId,
        permissions: ['token:read', 'token:use'],
        as_of: expect.stringMatching(/Z$/),
      },
    ]);
    expect(Date.now() - Date.parse(json.as_of)).toBeLessThan(5_000);
    expect((await verify({ key: made.key, permission: 'token:use' })).json.allowed).toBe(true);
    expect((await verify({ key: made.key, permission: 'token:delete' })).json).toMatchObject({
      valid: true,
      allowed: false,
    });
    await by.write(
      made.tenantId,
      updateApplication(made.id, { permissions: ['token:read', 'token:delete'] }),
    );
    expect((await verify({ key: made.key, permission: 'token:delete' })).json.allowed).toBe(true);
    const { key, input } = newKey(made.tenantId, { expiresAt: '2100-01-01T00:00:00.000Z' });
    await by.write(made.tenantId, addKey(made.id, input));
    expect((await verify({ key })).json.expires_at).toBe('2100-01-01T00:00:00.000Z');
  });

  it('are invalid for one of six reasons', async () => {
    const reasonOf = async (key: string) => {
      const { status, json } = await verify({ key, permission: 'token:read' });
      expect(status).toBe(200);
      expect(Object.keys(json)).toEqual(['valid', 'reason']);
      return json.reason as string;
    };
    for (const key of ['', 'x', made.key.slice(0, -1), `${made.key} `, caller])
      expect(await reasonOf(key)).toBe('malformed');
    expect(await reasonOf(makeKey(made.tenantId))).toBe('unknown');
    expect(await reasonOf(makeKey(randomUUID()))).toBe('unknown');
    const soon = new Date(Date.now() + 1_000).toISOString();
    const { key, input } = newKey(made.tenantId, { expiresAt: soon });
    await by.write(made.tenantId, addKey(made.id, input));
    const [revoked, gone] = [await newKeyOf(), await newKeyOf()];
    await by.write(revoked.tenantId, revokeKey(revoked.keyId));
    await by.write(gone.tenantId, deleteApplication(gone.id));
    expect(await reasonOf(revoked.key)).toBe('revoked');
    expect(await reasonOf(gone.key)).toBe('application_deleted');
    const ended = await newKeyOf();
    await by.write(ended.tenantId, deleteTenant());
    expect(await reasonOf(ended.key)).toBe('tenant_deleted');
    await until(async () => (await verify({ key })).json.valid === false);
    expect(await reasonOf(key)).toBe('expired');
  });

  it('are checked without bodies, for proxies', async () => {
    const named = {
      'svc-tenant-id': made.tenantId,
      'svc-application-id': made.id,
      'svc-key-id': made.keyId,
    };
    const essence = async (...asked: Parameters<typeof check>) => {
      const { status, text, headers } = await check(...asked);
      const names = [...headers].filter(([name]) => name in named || name === 'www-authenticate');
      return [status, text, Object.fromEntries(names)];
    };
    expect(await essence(made.key)).toEqual([200, '', named]);
    expect(await essence(made.key, '?permission=token:read')).toEqual([200, '', named]);
    expect(await essence(made.key, '?permission=log:read')).toEqual([403, '', named]);
    const refused = [401, '', { 'www-authenticate': 'ApiKey realm="tenant-ledger"' }];
    expect(await essence(makeKey(made.tenantId))).toEqual(refused);
    expect(await essence(undefined)).toEqual(refused);
    const misspelt = await check(made.key, '?permission=token:raed');
    expectProblem(misspelt, 400, 'validation_failed', 'permission');
  });

  it('are asked about with valid questions', async () => {
    const misspelt = await verify({ key: made.key, permission: 'tokn:read' });
    expect([misspelt.status, misspelt.json.errors]).toEqual([
      400,
      { permission: ['is not known: did you mean token:read?'] },
    ]);
    for (const [body, field] of [
      [{}, 'key'],
      [{ key: 1 }, 'key'],
      [{ key: made.key, client_address: 'example.com' }, 'client_address'],
      [{ key: made.key, permisson: 'token:read' }, 'permisson'],
    ] as const)
      expectProblem(await verify(body), 400, 'validation_failed', field);
  });

  it('are verified by services that may, with a valid key', async () => {
    const reporter = await newService(by, 'facts');
    for (const key of [reporter.key, made.key]) {
      expectProblem(await verify({ key: made.key }, key), 403, 'service_only');
      expectProblem(await check(made.key, '', key), 403, 'service_only');
    }
    expectProblem(await check(made.key, '', 'svc_x'), 401, 'key_refused');
    expect(service.stderr()).not.toContain(made.key);
  });

  it('are recorded as used or refused, with the address that the service has reported', async () => {
    const { tenantId, id, key, keyId } = await newKeyOf();
    const owner = await by.newOwner(tenantId);
    await verify({ key, client_address: '2001:db8::1' });
    await check(key);
    await verify({ key, permission: 'token:delete' });
    const uses = async () =>
      (await ask(`${service.url}/applications/${id}/keys/${keyId}/uses`, { key: owner.key })).json;
    const isCounted = /"operations":{"verifyKey":2},"refusals":{"permission_missing":1},.*"token:delete"/;
    await until(async () => isCounted.test(JSON.stringify(await uses())));
    const clients = async () =>
      (await by.events()).filter(({ type, stream }) => type === 'KeyUsed' && stream.endsWith(tenantId));
    await until(async () => JSON.stringify(await clients()).includes('"address":"2001:db8:0:0::/64"'));
    expect(JSON.stringify(await clients())).toContain('"reportedBy"');
  });

  it('are found by their digests in the own tenant, revoked ones too', async () => {
    const { tenantId, id, key, keyId } = await newKeyOf();
    const owner = await by.newOwner(tenantId);
    const find = (digest: unknown, as = owner.key) =>
      ask(`${service.url}/keys/find`, { method: 'POST', key: as, body: { digest } });
    const found = { application_id: id, key_id: keyId };
    expect((await find(digestOf(key))).json).toEqual({ ...found, state: 'active' });
    await by.write(tenantId, revokeKey(keyId));
    expect((await find(digestOf(key).toUpperCase())).json).toEqual({ ...found, state: 'revoked' });
    expectProblem(await find(digestOf(made.key)), 404, 'key_not_found');
    expectProblem(await find('x'), 400, 'validation_failed', 'digest');
  });
});

describe('the limit of services', () => {
  it('counts instead of the global one for a valid key of a service, and is listed', async () => {
    const service = await startService({ RATE_LIMITS: 'global=3,services=5' });
    const by = await beside(service);
    const { key } = await newService(by, 'verify');
    const verify = (as = key) =>
      ask(`${service.url}/keys/verify`, { method: 'POST', key: as, body: { key: 'x' } });
    const invalid = () => verify(makeKey(randomUUID()));
    for (let left = 4; left >= 0; left -= 1)
      expect((await verify()).headers.get('ratelimit')).toMatch(new RegExp(`^"services";r=${left};`));
    const refused = await verify();
    expectProblem(refused, 429, 'rate_limited');
    expect(refused.json.violated_policies).toEqual(['services']);
    const { headers, json } = await ask(`${service.url}/limits`, { key: service.key });
    expect(headers.get('ratelimit')).toMatch(/^"global";r=2;/);
    expect(json.rate_limits.at(-1)).toEqual({
      name: 'services',
      methods: ['GET', 'POST'],
      paths: ['/facts', '/keys/verify'],
      limit: 5,
      window_seconds: 10,
      block_seconds: 0,
    });
    expect((await invalid()).headers.get('ratelimit')).toMatch(/^"global";r=1;/);
  });
});
