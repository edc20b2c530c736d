import { createHash } from 'node:crypto';
import { updateApplication } from '../../src/domain/applications';
import { beside, type Beside } from '../support/beside';
import { ask, type ApiResponse, type AskOptions } from '../support/http';
import { startService, type Service } from '../support/service';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let service: Service;
let by: Beside;
let tenantId: string;
let owner: { id: string; key: string; keyId: string };

beforeAll(async () => {
  service = await startService();
  by = await beside(service);
});
beforeEach(async () => {
  ({ tenantId } = await by.newTenant());
  owner = await by.newOwner(tenantId);
});

const to = (path: string, asking: AskOptions = {}): Promise<ApiResponse> =>
  ask(`${service.url}${path}`, { key: owner.key, ...asking });
const post = (path: string, body: unknown) => to(path, { method: 'POST', body });
const shop = { name: 'Shop', type: 'private', permissions: ['token:create'] };
const idsIn = ({ json }: ApiResponse): string[] => json.data.map(({ id }: { id: string }) => id);

describe('a leaked key', () => {
  const having = (digest: string, more: AskOptions = {}) => to(`/applications?key_digest=${digest}`, more);

  it('is found by the first characters of its digest, in any case, until it ends', async () => {
    const { json: made } = await post('/applications', shop);
    const digest = sha256(made.key);
    expect(made.keys).toEqual([expect.objectContaining({ digest: digest.slice(0, 8) })]);
    for (const part of [digest.slice(0, 8), digest.slice(0, 20).toUpperCase(), digest]) {
      const found = await having(part);
      expect(idsIn(found)).toEqual([made.id]);
      expect(found.json.data[0].keys[0]).toMatchObject({ id: made.keys[0].id, digest: digest.slice(0, 8) });
    }
    const stranger = await by.newTenant();
    expect(idsIn(await having(sha256(stranger.key).slice(0, 8)))).toEqual([]);
    await to(`/applications/${made.id}/keys/${made.keys[0].id}`, { method: 'DELETE' });
    expect(idsIn(await having(digest))).toEqual([]);
  });

  it('is not looked for by less', async () => {
    for (const wrong of ['1234567', 'g'.repeat(8), 'a'.repeat(65)])
      expect(await having(wrong)).toMatchObject({
        status: 400,
        json: { code: 'validation_failed', errors: { key_digest: [expect.stringContaining('8 to 64')] } },
      });
  });
});

it('a caller sees which key it is calling with', async () => {
  const { json: second } = await post(`/applications/${owner.id}/keys`, { name: 'Second' });
  const first = await to('/applications/key');
  const other = await to('/applications/key', { key: second.key });
  expect([first.json.key_id, other.json.key_id]).toEqual([owner.keyId, second.id]);
  expect(first.headers.get('etag')).not.toBe(other.headers.get('etag'));
  expect((await to(`/applications/${owner.id}`)).json).not.toHaveProperty('key_id');
});

it('the Tenant did not exist before it was created', async () => {
  const asked = `${service.url}/tenants/self?as_of=2000-01-01`;
  const response = await fetch(asked, { headers: { 'SVC-API-KEY': owner.key } });
  expect([response.status, await response.json()]).toEqual([
    404,
    expect.objectContaining({ code: 'not_found' }),
  ]);
});

describe('the Applications as of a moment', () => {
  const asOf = (moment: string, more = '') => to(`/applications?as_of=${encodeURIComponent(moment)}${more}`);
  const lastPosition = async (): Promise<string> =>
    (await to('/events')).text
      .split('\n')
      .flatMap((line) => /^\{"id".*?"position":"(tenant:[0-9]+)"/.exec(line)?.[1] ?? [])
      .at(-1)!;

  it('are shown with what they could do and the keys that were valid', async () => {
    const { json: made } = await post('/applications', shop);
    const before = await lastPosition();
    await to(`/applications/${made.id}`, { method: 'PUT', body: { name: 'Store', permissions: [] } });
    await to(`/applications/${made.id}/keys/${made.keys[0].id}`, { method: 'DELETE' });
    const after = await lastPosition();
    await to(`/applications/${made.id}`, { method: 'DELETE' });

    const { key: _key, ...asMade } = made;
    expect((await asOf(before, `&id=${made.id}`)).json).toEqual({
      pagination: { total_items: 1, page_number: 1, page_size: 20, total_pages: 1 },
      data: [asMade],
    });
    expect((await asOf(after, `&id=${made.id}`)).json.data).toEqual([
      expect.objectContaining({ name: 'Store', permissions: [], keys: [] }),
    ]);
    expect(idsIn(await asOf(new Date(Date.now() + 60_000).toISOString()))).not.toContain(made.id);
    expect(idsIn(await asOf(before, `&key_digest=${sha256(made.key)}`))).toEqual([made.id]);
    expect(idsIn(await asOf(before, '&type=private'))).toEqual([made.id]);
    expect(idsIn(await asOf('2000-01-01'))).toEqual([]);
  });

  it('equal the current ones now, and are paged alike', async () => {
    for (let n = 0; n < 5; n += 1) await post('/applications', { ...shop, name: `Shop ${n}` });
    const withoutUse = ({ json }: ApiResponse) =>
      JSON.parse(JSON.stringify(json).replaceAll(/,"last_used_at":"[^"]*"/g, ''));
    expect(withoutUse(await asOf('2099-01-01'))).toEqual(withoutUse(await to('/applications')));
    const seen: string[] = [];
    let start = '';
    for (let page = 0; page < 3; page += 1) {
      const found = await asOf('2099-01-01', `&size=3&start=${start}`);
      seen.push(...idsIn(found));
      start = found.json.pagination.after ?? '';
    }
    expect(seen).toEqual(idsIn(await to('/applications')));
    expect(start).toBe('');
    expect(idsIn(await asOf('2099-01-01', '&size=3&page=2'))).toEqual(seen.slice(3, 6));
  });

  it('need log:read, and a moment', async () => {
    const { key } = await by.newApplication(tenantId, 'management', 'application:read');
    expect(await to('/applications?as_of=2099-01-01', { key })).toMatchObject({
      status: 403,
      json: { required_permission: 'log:read' },
    });
    expect(await asOf('yesterday')).toMatchObject({ status: 400, json: { code: 'validation_failed' } });
  });

  it('are shown at once when another process has granted log:read', async () => {
    const { id, key } = await by.newApplication(tenantId, 'management', 'application:read');
    const past = () => to('/applications?as_of=2099-01-01', { key });
    expect((await past()).status).toBe(403);
    expect((await to('/applications', { key })).status).toBe(200);
    await by.write(tenantId, updateApplication(id, { permissions: ['application:read', 'log:read'] }));
    expect((await past()).status).toBe(200);
  });
});

describe('a maximum lifetime of keys', () => {
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();

  it('is set by the operator, refuses keys that would live longer, and is lifted again', async () => {
    const bound = ['tenant', 'set-key-lifetime', tenantId];
    expect(await by.run(...bound, '--days', '90', '--json')).toEqual({
      tenant_id: tenantId,
      max_key_lifetime_seconds: 7_776_000,
    });
    const keys = `/applications/${owner.id}/keys`;
    const refused = {
      status: 400,
      json: { errors: { expires_at: [expect.stringMatching(/must expire within 90 days: now by \d{4}-/)] } },
    };
    expect(await post('/applications', shop)).toMatchObject(refused);
    expect(await post(keys, {})).toMatchObject(refused);
    expect(await post(keys, { expires_at: inDays(91) })).toMatchObject(refused);
    expect(await post(`/applications/${owner.id}/regenerate`, { grace_seconds: 60 })).toMatchObject(refused);
    expect((await post(keys, { expires_at: inDays(89) })).status).toBe(201);
    expect((await post('/applications', { ...shop, create_key: false })).status).toBe(201);
    expect((await to('/tenants/self')).status).toBe(200); // existing keys stay as they are

    expect(await by.run(...bound, '--none', '--json')).toMatchObject({ max_key_lifetime_seconds: null });
    expect((await post(keys, {})).status).toBe(201);
    const events = (await to('/events?type=TenantKeyLifetimeSet')).text;
    expect(events).toContain('"field":"max_key_lifetime_seconds","from":null,"to":7776000');
    expect(events).toContain('"field":"max_key_lifetime_seconds","from":7776000,"to":null');
  });
});
