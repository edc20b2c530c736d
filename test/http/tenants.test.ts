import { besideForTests } from '../support/beside';
import { ask, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { serviceForTests } from '../support/service';

const NIL = '00000000-0000-0000-0000-000000000000';
const TIME = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('a Tenant over HTTP', () => {
  const service = serviceForTests();
  const by = besideForTests(service);
  let tenantId: string;
  let key: string;
  let applicationId: string;
  const call = (asking: AskOptions = {}, path = '/tenants/self') =>
    ask(`${service.url}${path}`, { key, ...asking });
  const put = (body: unknown, headers: Record<string, string> = {}) => call({ method: 'PUT', body, headers });

  beforeEach(async () => {
    ({ tenantId, key, id: applicationId } = await by.newTenant('Acme'));
  });

  describe('GET', () => {
    it('has exactly the fields of a Tenant that was never changed', async () => {
      const { status, json, headers } = await call();
      expect(status).toBe(200);
      expect(json).toEqual({
        id: tenantId,
        owner_id: NIL,
        name: 'Acme',
        settings: { fingerprint_tokens: 'false', deduplicate_tokens: 'false' },
        created_by: NIL,
        created_at: expect.stringMatching(TIME),
      });
      const created = (await by.events()).find((event) => event.stream === by.streams.tenant(tenantId))!;
      expect(json.created_at).toBe((created.metadata as { at: string }).at);
      expect(headers.get('etag')).toBe('"0"');
      expect(headers.get('cache-control')).toBe('private, no-cache');
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    });

    it('answers HEAD with the same headers and no body', async () => {
      const whole = await call();
      const head = await call({ method: 'HEAD' });
      expect([head.status, head.text]).toEqual([200, '']);
      for (const name of ['etag', 'content-type', 'content-length', 'cache-control'])
        expect(head.headers.get(name)).toBe(whole.headers.get(name));
    });
  });

  describe('PUT', () => {
    it('changes the name, records who and when, and the next read agrees', async () => {
      const before = (await call()).json;
      const updated = await put({ name: 'Renamed' });
      expect(updated.status).toBe(200);
      expect(updated.json).toEqual({
        ...before,
        name: 'Renamed',
        modified_by: applicationId,
        modified_at: expect.stringMatching(TIME),
      });
      const read = await call();
      expect(read.json).toEqual(updated.json);
      expect(read.headers.get('etag')).toBe(updated.headers.get('etag'));
      expect(updated.headers.get('svc-read-pending')).toBeNull();
      const event = (await by.events()).at(-1)!;
      expect(event.type).toBe('TenantUpdated');
      expect(updated.json.modified_at).toBe((event.metadata as { at: string }).at);
      expect(updated.headers.get('etag')).toBe(`"${event.revision}"`);
    });

    it('merges settings into the current ones', async () => {
      await put({ name: 'Acme', settings: { fingerprint_tokens: 'true' } });
      await put({ name: 'Acme', settings: { deduplicate_tokens: 'true' } });
      await put({ name: 'Acme', settings: null });
      await put({ name: 'Acme' });
      const { json } = await put({ name: 'Acme', settings: { fingerprint_tokens: 'false' } });
      expect(json.settings).toEqual({ fingerprint_tokens: 'false', deduplicate_tokens: 'true' });
    });

    it('is one event each time, even if nothing changed', async () => {
      const before = await by.count();
      const tags = new Set<string | null>();
      for (let i = 0; i < 3; i++) tags.add((await put({ name: 'Acme' })).headers.get('etag'));
      expect(await by.count()).toBe(before + 3);
      expect(tags.size).toBe(3);
      const last = (await by.events()).slice(before);
      expect(last.map((event) => event.type)).toEqual(['TenantUpdated', 'TenantUpdated', 'TenantUpdated']);
    });

    it.each([' padded ', '𝒳'.repeat(100), 'a\u0000b'])('accepts the name %j unchanged', async (name) => {
      expect((await put({ name })).json.name).toBe(name);
      expect((await call()).json.name).toBe(name);
    });
  });

  describe('DELETE', () => {
    it('answers 204 without a body, keeps the audit trail, and invalidates every key', async () => {
      const second = await by.newApplication(tenantId, 'management', 'tenant:read', 'tenant:update');
      const before = await by.count();
      const deleted = await call({ method: 'DELETE' });
      expect([deleted.status, deleted.text]).toEqual([204, '']);
      expect(deleted.headers.get('content-type')).toBeNull();
      expect(deleted.headers.get('cache-control')).toBe('private, no-cache');
      const events = await by.events();
      expect(events).toHaveLength(before + 1);
      expect(events.at(-1)!.type).toBe('TenantDeleted');
      for (const one of [key, second.key]) {
        expectProblem(await call({ key: one }), 401, 'key_refused');
        expectProblem(await call({ key: one, method: 'PUT', body: { name: 'B' } }), 401, 'key_refused');
        expectProblem(await call({ key: one, method: 'DELETE' }), 401, 'key_refused');
        expectProblem(await call({ key: one }, '/permissions'), 401, 'key_refused');
      }
      expect(await by.count()).toBe(before + 1);
    });

    it('ignores a body', async () => {
      expect((await call({ method: 'DELETE', body: '{not json' })).status).toBe(204);
    });
  });

  it('has an ETag that is not changed by the plan, Applications or keys', async () => {
    const { headers } = await put({ name: 'Fixed' });
    const other = await by.newApplication(tenantId, 'public', 'token:create');
    await by.run('tenant', 'set-plan', tenantId, '--included-tokens', '9');
    await by.run('application', 'rename', other.id, '--tenant', tenantId, '--name', 'New');
    await by.run('application', 'set-permissions', other.id, '--tenant', tenantId);
    await by.run('key', 'create', '--tenant', tenantId, '--application', other.id);
    await by.run('key', 'revoke', other.keyId, '--tenant', tenantId);
    await by.run('application', 'delete', '--yes', other.id, '--tenant', tenantId);
    const read = await call();
    expect(read.headers.get('etag')).toBe(headers.get('etag'));
    expect(read.json.name).toBe('Fixed');
    const conditional = await put({ name: 'Again' }, { 'If-Match': headers.get('etag')! });
    expect(conditional.status).toBe(200);
    expect(conditional.headers.get('etag')).not.toBe(headers.get('etag'));
  });

  describe('If-Match', () => {
    it.each([
      ['the current tag', '"0"'],
      ['a list with it', '"7", "0","9"'],
      ['a list that also has a weak tag', 'W/"3", "0"'],
      ['a star', '*'],
      ['a padded star', ' * '],
    ])('accepts %s', async (_, header) => {
      expect((await put({ name: 'B' }, { 'If-Match': header })).status).toBe(200);
    });

    it.each([
      ['another tag', '"7"'],
      ['a list without it', '"7", "8"'],
      ['the weak tag', 'W/"0"'],
      ['an empty tag', '""'],
    ])('412 for %s, with the current ETag', async (_, header) => {
      const before = await by.count();
      for (const asking of [{ method: 'PUT', body: { name: 'B' } }, { method: 'DELETE' }]) {
        const response = await call({ ...asking, headers: { 'If-Match': header } });
        expectProblem(response, 412, 'precondition_failed');
        expect(response.headers.get('etag')).toBe('"0"');
      }
      expect(await by.count()).toBe(before);
    });

    it.each(['0', 'W/0', '"0', '"0" "1"', '', ',', '*, "0"'])('400 for %j', async (header) => {
      const before = await by.count();
      const response = await put({ name: 'B' }, { 'If-Match': header });
      expectProblem(response, 400, 'validation_failed', 'If-Match');
      expect(await by.count()).toBe(before);
    });

    it.each(['null', 'undefined', 'None'])('400 for %s, which says that nothing was read', async (header) => {
      const response = await put({ name: 'B' }, { 'If-Match': header });
      expect(response.json.errors).toEqual({
        'If-Match': [expect.stringMatching(`not the text ${header}: .* had no ETag`)],
      });
    });

    it('on DELETE deletes only the revision that was read', async () => {
      expect((await call({ method: 'DELETE', headers: { 'If-Match': '"0"' } })).status).toBe(204);
    });

    it('is checked after the permission and the body', async () => {
      const limited = await by.newApplication(tenantId, 'management', 'tenant:read');
      const headers = { 'If-Match': '"99"' };
      const denied = await call({ key: limited.key, method: 'PUT', body: { name: 'B' }, headers });
      expect(denied.status).toBe(403);
      expect((await put({ name: '' }, headers)).status).toBe(400);
    });

    it('is ignored on GET', async () => {
      expect((await call({ headers: { 'If-Match': '"99"' } })).status).toBe(200);
    });
  });

  describe('If-None-Match', () => {
    it('refuses a write of what the client has, or of anything that exists', async () => {
      const tag = (await call()).headers.get('etag')!;
      for (const asking of [{ method: 'PUT', body: { name: 'B' } }, { method: 'DELETE' }])
        for (const header of ['*', tag, `W/${tag}`]) {
          const response = await call({ ...asking, headers: { 'If-None-Match': header } });
          expectProblem(response, 412, 'precondition_failed');
          expect(response.headers.get('etag')).toBe(tag);
        }
      expect((await put({ name: 'B' }, { 'If-None-Match': '"99"' })).status).toBe(200);
    });

    it.each(['"0"', 'W/"0"', '"7", "0"', '*'])('304 for %s', async (header) => {
      for (const method of ['GET', 'HEAD']) {
        const response = await call({ method, headers: { 'If-None-Match': header } });
        expect([response.status, response.text]).toEqual([304, '']);
        expect(response.headers.get('etag')).toBe('"0"');
        expect(response.headers.get('cache-control')).toBe('private, no-cache');
      }
    });

    it.each(['"1"', 'W/"1"', '0', '', 'nonsense'])('200 for %j', async (header) => {
      const response = await call({ headers: { 'If-None-Match': header } });
      expect(response.status).toBe(200);
      expect(response.json.name).toBe('Acme');
    });

    it('stops matching after a change', async () => {
      await put({ name: 'B' });
      expect((await call({ headers: { 'If-None-Match': '"0"' } })).json.name).toBe('B');
    });
  });
});
