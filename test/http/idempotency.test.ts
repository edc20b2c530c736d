import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beside, besideForTests } from '../support/beside';
import { ask, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { sendRaw } from '../support/raw';
import { serviceForTests, startService } from '../support/service';

const OWN = 'SVC-IDEMPOTENCY-KEY';
const STANDARD = 'Idempotency-Key';

describe('idempotency', () => {
  const service = serviceForTests();
  const by = besideForTests(service);
  let key: string;
  let tenantId: string;
  const call = (asking: AskOptions, path = '/tenants/self') =>
    ask(`${service.url}${path}`, { key, ...asking });
  const put = (body: unknown, headers: Record<string, string>, path?: string) =>
    call({ method: 'PUT', body, headers }, path);

  beforeEach(async () => {
    ({ key, tenantId } = await by.newTenant('Acme'));
  });

  it.each([
    ['its own header', { [OWN]: 'k-1' }, { [OWN]: 'k-1' }],
    ['the standard header', { [STANDARD]: 'k-1' }, { [STANDARD]: 'k-1' }],
    ['one and then the other', { [OWN]: 'k-1' }, { [STANDARD]: 'k-1' }],
    ['both headers, with equal values', { [OWN]: 'k-1', [STANDARD]: 'k-1' }, { [STANDARD]: 'k-1' }],
    ['the header in another letter case', { 'svc-idempotency-KEY': 'k-1' }, { [OWN]: 'k-1' }],
    [
      'every visible character',
      { [OWN]: '!"#$%&\'()*+,-./:;<=>?@[]^_`{|}~' },
      { [OWN]: '!"#$%&\'()*+,-./:;<=>?@[]^_`{|}~' },
    ],
    ['255 characters', { [OWN]: 'x'.repeat(255) }, { [OWN]: 'x'.repeat(255) }],
  ])('replays with %s: the same response and one event', async (_, first, second) => {
    const before = await by.count();
    const one = await put({ name: 'Once' }, first);
    const two = await put({ name: 'Once' }, second);
    expect([one.status, two.status]).toEqual([200, 200]);
    expect(two.text).toBe(one.text);
    expect(two.headers.get('etag')).toBe(one.headers.get('etag'));
    const replayed = [one, two].map(({ headers }) => headers.get('svc-idempotent-replayed'));
    expect(replayed).toEqual([null, 'true']);
    expect(await by.count()).toBe(before + 1);
  });

  it('replays the response from its own event, also after other changes', async () => {
    const headers = { [OWN]: 'early' };
    const body = { name: 'Early', settings: { fingerprint_tokens: 'true' } };
    const first = await put(body, headers);
    await put({ name: 'Late', settings: { fingerprint_tokens: 'false' } }, { [OWN]: 'late' });
    const before = await by.count();
    const again = await put(body, headers);
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(again.headers.get('etag')).toBe(first.headers.get('etag'));
    expect((await call({})).json.name).toBe('Late');
    expect(await by.count()).toBe(before);
  });

  it('replays before If-Match is checked', async () => {
    const headers = { [OWN]: 'k', 'If-Match': '"0"' };
    const first = await put({ name: 'B' }, headers);
    const again = await put({ name: 'B' }, headers);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.text).toBe(first.text);
  });

  it('is scoped to the Application', async () => {
    const other = await by.newApplication(tenantId, 'management', 'tenant:update');
    const before = await by.count();
    await put({ name: 'B' }, { [OWN]: 'k' });
    const otherResponse = await call({
      key: other.key,
      method: 'PUT',
      body: { name: 'C' },
      headers: { [OWN]: 'k' },
    });
    expect([otherResponse.status, otherResponse.json.modified_by]).toEqual([200, other.id]);
    expect(await by.count()).toBe(before + 2);
  });

  it('is scoped to the method', async () => {
    await put({ name: 'B' }, { [OWN]: 'k' });
    expect((await call({ method: 'DELETE', headers: { [OWN]: 'k' } })).status).toBe(204);
  });

  it('is scoped to the path', async () => {
    const { key: owner } = await by.newOwner(tenantId);
    const other = await by.newApplication(tenantId, 'private', 'token:read');
    const paths = ['/tenants/self', `/applications/${other.id}`];
    const body = { name: 'Same' };
    const sent = { key: owner, method: 'PUT', body, headers: { [OWN]: 'k' } };
    const before = await by.count();
    const answers = [];
    for (const path of [...paths, ...paths]) answers.push(await call(sent, path));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers[1]?.json).toMatchObject({ id: other.id, ...body });
    expect(answers.slice(2).map(({ text }) => text)).toEqual(answers.slice(0, 2).map(({ text }) => text));
    expect(await by.count()).toBe(before + 2);
  });

  it('does not store failures', async () => {
    const before = await by.count();
    expect((await put({ name: '' }, { [OWN]: 'k' })).status).toBe(400);
    expect((await put({ name: 'B' }, { [OWN]: 'k', 'If-Match': '"77"' })).status).toBe(412);
    expect((await put({ name: 'B' }, { [OWN]: 'k' })).status).toBe(200);
    expect(await by.count()).toBe(before + 1);
  });

  it('is ignored on GET', async () => {
    for (let i = 0; i < 2; i++)
      expect((await call({ headers: { [OWN]: 'a b', [STANDARD]: 'c' } })).status).toBe(200);
  });

  describe('400', () => {
    it('two headers that differ', async () => {
      const before = await by.count();
      const response = await put({ name: 'B' }, { [OWN]: 'a', [STANDARD]: 'b' });
      expectProblem(response, 400, 'validation_failed', OWN);
      expect(await by.count()).toBe(before);
    });

    it.each([
      ['empty', ''],
      ['with a space', 'a b'],
      ['too long', 'x'.repeat(256)],
      ['not ASCII', 'clé'],
      ['with a tab', 'a\tb'],
      ['an API key', `key_${'0'.repeat(55)}`],
    ])('a key that is %s', async (_, value) => {
      const before = await by.count();
      for (const name of [OWN, STANDARD])
        for (const asking of [{ method: 'PUT', body: { name: 'B' } }, { method: 'DELETE' }]) {
          const response = await call({ ...asking, headers: { [name]: value } });
          expectProblem(response, 400, 'validation_failed', name);
        }
      expect(await by.count()).toBe(before);
    });

    it('a key sent twice', async () => {
      const twice = `${OWN}: k\r\n${OWN}: k\r\nConnection: close\r\n`;
      const bytes = `DELETE /tenants/self HTTP/1.1\r\nHost: x\r\nSVC-API-KEY: ${key}\r\n${twice}\r\n`;
      const [response] = await sendRaw(service.url, bytes);
      expectProblem(response!, 400, 'validation_failed', OWN);
    });
  });

  describe('422', () => {
    it.each([
      ['another name', '{"name":"C"}'],
      ['the same JSON in other bytes', '{ "name":"B"}'],
      ['an extra member', '{"name":"B","id":1}'],
    ])('%s', async (_, body) => {
      await put('{"name":"B"}', { [OWN]: 'k' });
      const before = await by.count();
      expectProblem(await put(body, { [OWN]: 'k' }), 422, 'idempotency_key_reused');
      expect(await by.count()).toBe(before);
      expect((await call({})).json.name).toBe('B');
    });

    it('is sent before If-Match is checked', async () => {
      await put({ name: 'B' }, { [OWN]: 'k' });
      expect((await put({ name: 'C' }, { [OWN]: 'k', 'If-Match': '"77"' })).status).toBe(422);
    });
  });

  it('with the same key at the same time, makes one event; the others get 409 or the same response', async () => {
    const before = await by.count();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => put({ name: 'Once' }, { [OWN]: 'k' })),
    );
    const good = answers.filter((response) => response.status === 200);
    const busy = answers.filter((response) => response.status === 409);
    expect(good.length + busy.length).toBe(20);
    expect(new Set(good.map((response) => response.text)).size).toBe(1);
    for (const response of busy) {
      expectProblem(response, 409, 'idempotency_in_progress');
      expect(response.headers.get('retry-after')).toBe('1');
    }
    expect(await by.count()).toBe(before + 1);
  });

  describe('of DELETE', () => {
    it('repeats 204 with the same keys; anything else is 401', async () => {
      const headers = { [OWN]: 'bye' };
      expect((await put({ name: 'B' }, headers)).status).toBe(200);
      const before = await by.count();
      expect((await call({ method: 'DELETE', headers })).status).toBe(204);
      const again = await call({ method: 'DELETE', headers });
      expect([again.status, again.text]).toEqual([204, '']);
      expect(
        (await call({ method: 'DELETE', headers: { [STANDARD]: 'bye' } }, '/tenants/self/')).status,
      ).toBe(204);
      const refused: [AskOptions, string?][] = [
        [{ method: 'DELETE' }],
        [{ method: 'DELETE', headers: { [OWN]: 'other' } }],
        [{ method: 'PUT', headers, body: { name: 'B' } }],
        [{ method: 'GET', headers }],
        [{ method: 'POST', headers }, '/applications'],
      ];
      for (const [asking, path] of refused) expectProblem(await call(asking, path), 401, 'key_refused');
      expect(await by.count()).toBe(before + 1);
    });

    it('does not repeat the response for a key that was revoked before', async () => {
      const { id } = await by.newApplication(tenantId, 'management', 'tenant:delete');
      const made = await by.run('key', 'create', '--tenant', tenantId, '--application', id);
      const second = await by.run('key', 'create', '--tenant', tenantId, '--application', id);
      await by.run('key', 'revoke', made['key_id']!, '--tenant', tenantId);
      const asking = { method: 'DELETE', headers: { [OWN]: 'bye' } };
      expect((await call({ ...asking, key: second['key']! })).status).toBe(204);
      expect((await call({ ...asking, key: made['key']! })).status).toBe(401);
      expect((await call({ ...asking, key: second['key']! })).status).toBe(204);
    });
  });
});

describe('idempotency across a restart', () => {
  it('survives it, even if the read models are lost', async () => {
    const first = await startService();
    const { key, folder } = first;
    const headers = { [OWN]: randomUUID() };
    const asking = { key, method: 'PUT', body: { name: 'Lasting' }, headers };
    const response = await ask(`${first.url}/tenants/self`, asking);
    await ask(`${first.url}/tenants/self`, { ...asking, body: { name: 'Later' }, headers: {} });
    const by = await beside(first);
    const deleted = await by.newTenant();
    const deletion = { key: deleted.key, method: 'DELETE', headers: { [OWN]: 'bye' } };
    expect((await ask(`${first.url}/tenants/self`, deletion)).status).toBe(204);
    const before = await by.count();
    expect(await first.stop()).toBe(0);
    rmSync(join(folder, 'read-models'), { recursive: true, force: true }); // absent where read models are in MongoDB
    const second = await startService({ DATA_DIR: folder });
    const again = await ask(`${second.url}/tenants/self`, asking);
    expect([again.status, again.text]).toEqual([200, response.text]);
    expect((await ask(`${second.url}/tenants/self`, { ...asking, body: { name: 'X' } })).status).toBe(422);
    expect((await ask(`${second.url}/tenants/self`, { key })).json.name).toBe('Later');
    expect((await ask(`${second.url}/tenants/self`, deletion)).status).toBe(204);
    expect((await ask(`${second.url}/tenants/self`, { ...asking, key: deleted.key })).status).toBe(401);
    expect(await by.count()).toBe(before);
  });
});
