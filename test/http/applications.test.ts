import { randomUUID } from 'node:crypto';
import { QUOTAS } from '../../src/domain/tenant';
import { besideForTests } from '../support/beside';
import { ask, type ApiResponse, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { serviceForTests } from '../support/service';
import { until } from '../support/waiting';

const RULES = {
  time: 'must be an ISO 8601 date or date-time, for example 2026-01-31T12:00:00Z',
  id: 'must be a UUID, for example 11111111-2222-4333-8444-555555555555',
};
const UUID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const KEY = expect.stringMatching(/^key_[0-9A-Za-z]{55}$/);

const service = serviceForTests();
const by = besideForTests(service);
let tenantId: string;
/** The key of an Application with every permission that a management Application may hold. */
let owner: { id: string; key: string; keyId: string };

beforeEach(async () => {
  const made = await by.newTenant();
  ({ tenantId } = made);
  owner = await by.newOwner(tenantId);
});

const to = (path: string, asking: AskOptions = {}): Promise<ApiResponse> =>
  ask(`${service.url}${path}`, { key: owner.key, ...asking });
const post = (path: string, body?: unknown, more: AskOptions = {}) =>
  to(path, { method: 'POST', body, ...more });
const put = (path: string, body: unknown, more: AskOptions = {}) =>
  to(path, { method: 'PUT', body, ...more });
const remove = (path: string, more: AskOptions = {}) => to(path, { method: 'DELETE', ...more });

const shop = { name: 'Shop', type: 'private', permissions: ['token:create', 'token:read'] };
const created = async (body: object = shop): Promise<ApiResponse['json']> => {
  const answer = await post('/applications', body);
  expect(answer.status).toBe(201);
  return answer.json;
};

it('a response with a new key is stored by nobody', async () => {
  const { id } = await created();
  for (const path of ['/applications', `/applications/${id}/keys`, `/applications/${id}/regenerate`]) {
    const { json, headers } = await post(path, path === '/applications' ? shop : undefined);
    expect([json.key, headers.get('cache-control')]).toEqual([KEY, 'no-store']);
  }
});

describe('creating an Application', () => {
  it('returns the Application and its first key, which is shown once', async () => {
    const answer = await post('/applications', { ...shop, permissions: [...shop.permissions, 'token:read'] });
    expect(answer.status).toBe(201);
    const { json } = answer;
    expect(json).toEqual({
      id: UUID,
      tenant_id: tenantId,
      ...shop,
      key: KEY,
      keys: [{ id: UUID, created_by: owner.id, created_at: TIME }],
      created_by: owner.id,
      created_at: TIME,
    });
    const { key, ...rest } = json;
    const shown = await to(`/applications/${json.id}`);
    expect(shown.json).toEqual(rest);
    expect(shown.headers.get('etag')).toBe(answer.headers.get('etag'));
    expect((await to('/permissions', { key })).status).toBe(200);
    expect((await to('/applications/key', { key })).json).toMatchObject({ id: json.id });
  });

  it('creates no key if none is requested, or one that expires', async () => {
    const bare = await created({ ...shop, create_key: false });
    expect(bare.keys).toEqual([]);
    expect(bare).not.toHaveProperty('key');
    const expiring = await created({ ...shop, expires_at: '2031-01-31' });
    expect(expiring.keys[0].expires_at).toBe('2031-01-31T00:00:00.000Z');
  });

  it('is recorded with the Application as its actor, and no key in any event', async () => {
    const { id, key } = await created();
    const events = (await by.events()).filter(({ stream }) => stream.endsWith(tenantId));
    const [application, added] = events.slice(-2);
    expect(application).toMatchObject({ type: 'ApplicationCreated', data: { applicationId: id } });
    expect(application?.metadata).toMatchObject({ actor: { type: 'application', id: owner.id } });
    expect(added?.type).toBe('KeyAdded');
    expect(JSON.stringify(events)).not.toContain(key);
    const logs = await to(`/logs?entity_id=${id}`);
    expect(logs.json.data).toMatchObject([{ actor_id: owner.id, message: 'Application created' }]);
  });

  it.each<[string, object, string]>([
    ['an unknown permission', { ...shop, permissions: ['token:fly'] }, 'permissions'],
    ['a permission that its type may not hold', { ...shop, permissions: ['log:read'] }, 'permissions'],
    ['a name of 201 characters', { ...shop, name: 'x'.repeat(201) }, 'name'],
    ['a blank name', { ...shop, name: ' ' }, 'name'],
    ['no name', { type: 'private' }, 'name'],
    ['no type', { name: 'Shop' }, 'type'],
    ['an unknown type', { ...shop, type: 'secret' }, 'type'],
    ['permissions that are a string', { ...shop, permissions: 'token:read' }, 'permissions'],
    ['an expiry in the past', { ...shop, expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    ['an expiry that is not a time', { ...shop, expires_at: 'soon' }, 'expires_at'],
  ])('is refused with %s, and changes nothing', async (_, body, field) => {
    const before = await by.count();
    const answer = await post('/applications', body);
    expectProblem(answer, 400, 'validation_failed', field);
    expect(await by.count()).toBe(before);
  });
});

it.each([
  ['POST', '/applications', { ...shop, expires_at: 'soon' }, 'expires_at', RULES.time],
  ['GET', '/applications?id=soon', undefined, 'id', RULES.id],
])('%s %s %j is told the rule of what it violates', async (method, path, body, field, rule) => {
  expect((await to(path, { method, body })).json.errors).toEqual({ [field]: [rule] });
});

describe('a repeated POST', () => {
  const once = { headers: { 'Idempotency-Key': 'k1' } };

  it('returns the same Application without its key, whatever has happened to it since', async () => {
    const first = await post('/applications', shop, once);
    const { key, ...rest } = first.json;
    expect(key).toEqual(KEY);
    const before = await by.count();
    const second = await post('/applications', shop, once);
    expect([second.status, second.json]).toEqual([201, rest]);
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'));
    expect(await by.count()).toBe(before);
    await put(`/applications/${rest.id}`, { name: 'Another' });
    await remove(`/applications/${rest.id}`);
    expect((await post('/applications', shop, once)).json).toEqual(rest);
    expectProblem(await post('/applications', { ...shop, name: 'B' }, once), 422, 'idempotency_key_reused');
  });

  it('is matched by PUT and DELETE, which also apply only once', async () => {
    const { id } = await created();
    const body = { name: 'Once', permissions: ['token:use'] };
    const first = await put(`/applications/${id}`, body, once);
    await put(`/applications/${id}`, { name: 'Later' });
    const before = await by.count();
    const second = await put(`/applications/${id}`, body, once);
    expect(second.json).toEqual(first.json);
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'));
    expect((await remove(`/applications/${id}`, once)).status).toBe(204);
    expect((await remove(`/applications/${id}`, once)).status).toBe(204);
    expect(await by.count()).toBe(before + 1);
    expectProblem(await remove(`/applications/${id}`), 404, 'application_not_found');
  });
});

describe('updating an Application', () => {
  it('changes its name, its permissions or both, and each time it is one event', async () => {
    const { id } = await created();
    const before = await by.count();
    const renamed = await put(`/applications/${id}`, { name: 'New' });
    expect(renamed.json).toMatchObject({ name: 'New', permissions: shop.permissions, modified_by: owner.id });
    const both = await put(`/applications/${id}`, { name: 'Both', permissions: [], type: 'private' });
    expect(both.json).toMatchObject({ name: 'Both', permissions: [], modified_at: TIME });
    expect((await put(`/applications/${id}`, { name: 'Both', permissions: null })).json).toMatchObject({
      permissions: [],
    });
    expect((await by.events()).slice(before)).toMatchObject([
      { type: 'ApplicationUpdated', metadata: { changes: [{ field: 'name', to: 'New' }] } },
      { type: 'ApplicationUpdated', metadata: { changes: [{ field: 'name' }, { field: 'permissions' }] } },
      { type: 'ApplicationUpdated', metadata: { changes: [] } },
    ]);
    const { json } = await to(`/logs?entity_type=application&entity_id=${id}`);
    expect(json.data.map(({ message }: { message: string }) => message)).toEqual([
      'Application updated, nothing changed',
      'Application updated',
      'Application updated',
      'Application created',
    ]);
    const shown = await to(`/applications/${id}`);
    expect(shown.json).toMatchObject({ name: 'Both', permissions: [] });
  });

  it('requires the entity tag to match', async () => {
    const { id } = await created();
    const tag = (await to(`/applications/${id}`)).headers.get('etag') ?? '';
    const first = await put(`/applications/${id}`, { name: 'A' }, { headers: { 'If-Match': tag } });
    expect(first.status).toBe(200);
    const late = await put(`/applications/${id}`, { name: 'B' }, { headers: { 'If-Match': tag } });
    expectProblem(late, 412, 'precondition_failed');
    expect(late.headers.get('etag')).toBe(first.headers.get('etag'));
    expectProblem(
      await remove(`/applications/${id}`, { headers: { 'If-Match': tag } }),
      412,
      'precondition_failed',
    );
    const { json: added } = await post(`/applications/${id}/keys`);
    const former = first.headers.get('etag') ?? '';
    expectProblem(
      await remove(`/applications/${id}`, { headers: { 'If-Match': former } }),
      412,
      'precondition_failed',
    );
    await remove(`/applications/${id}/keys/${added.id}`);
    const now = (await to(`/applications/${id}`)).headers.get('etag') ?? '';
    expect((await remove(`/applications/${id}`, { headers: { 'If-Match': now } })).status).toBe(204);
  });

  it('cannot change the type', async () => {
    const { id } = await created();
    expectProblem(
      await put(`/applications/${id}`, { name: 'A', type: 'public' }),
      409,
      'application_type_fixed',
    );
    expect((await put(`/applications/${id}`, { name: 'A', type: null })).status).toBe(200);
    const wrong = await put(`/applications/${id}`, { name: 'A', permissions: ['log:read'] });
    expectProblem(wrong, 400, 'validation_failed');
  });
});

describe('the entity tag of an Application', () => {
  const tagOf = (answer: ApiResponse): string => answer.headers.get('etag') ?? '';
  const ifChanged = (path: string, tag: string, key = owner.key) =>
    to(path, { key, headers: { 'If-None-Match': tag } });

  it('is the same in the responses to reads and writes', async () => {
    const answer = await post('/applications', shop);
    const path = `/applications/${answer.json.id}`;
    expect(tagOf(await to(path))).toBe(tagOf(answer));
    const steps = [
      () => put(path, { name: 'A' }),
      () => post(`${path}/regenerate`, { grace_seconds: 60 }),
      () => post(`${path}/regenerate`),
    ];
    for (const step of steps) expect(tagOf(await step())).toBe(tagOf(await to(path)));
  });

  it('gives 304 while the Application has not changed, whenever its keys were used', async () => {
    const { id, key } = await created();
    const path = `/applications/${id}`;
    const tag = tagOf(await to(path));
    await to('/applications/key', { key });
    const isUsed = async () => (await to(path)).json.keys[0].last_used_at !== undefined;
    await until(isUsed, 5_000);
    const unchanged = await ifChanged(path, tag);
    expect([unchanged.status, unchanged.text, tagOf(unchanged)]).toEqual([304, '', tag]);
  });

  it.each<[string, (path: string, keyId: string) => Promise<unknown>]>([
    ['it is renamed', (path) => put(path, { name: 'A' })],
    ['its permissions are set', (path) => put(path, { name: 'Shop', permissions: [] })],
    ['a key is added', (path) => post(`${path}/keys`)],
    ['a key is revoked', (path, keyId) => remove(`${path}/keys/${keyId}`)],
    ['its key is replaced', (path) => post(`${path}/regenerate`)],
    [
      'its key gets an expiry',
      async (path, keyId) => {
        const { keys } = (await post(`${path}/regenerate`, { grace_seconds: 60 })).json;
        const added = keys.find(({ id }: { id: string }) => id !== keyId);
        await remove(`${path}/keys/${added.id}`);
      },
    ],
  ])('changes when %s', async (_, change) => {
    const { id, keys } = await created();
    const path = `/applications/${id}`;
    const before = tagOf(await to(path));
    await change(path, keys[0].id);
    expect((await ifChanged(path, before)).status).toBe(200);
  });
});

it('an Application that does not exist gets the same response whether its id is unknown, foreign, deleted or malformed', async () => {
  const deleted = await created();
  await remove(`/applications/${deleted.id}`);
  const other = await by.newTenant();
  for (const id of [randomUUID(), other.id, deleted.id, 'nonsense', '%00', '..%2f'])
    for (const [method, path, body] of [
      ['GET', `/applications/${id}`],
      ['PUT', `/applications/${id}`, { name: 'A' }],
      ['DELETE', `/applications/${id}`],
      ['GET', `/applications/${id}/keys`],
      ['POST', `/applications/${id}/keys`],
      ['GET', `/applications/${id}/keys/${randomUUID()}`],
      ['DELETE', `/applications/${id}/keys/${randomUUID()}`],
      ['POST', `/applications/${id}/regenerate`],
    ] as const)
      expectProblem(await to(path, { method, body }), 404, 'application_not_found');
});

describe('keys', () => {
  it('are added, listed, shown, used and revoked', async () => {
    const { id, keys } = await created();
    const answer = await post(`/applications/${id}/keys`, {
      name: 'Second',
      expires_at: '2031-01-31T12:00:00+01:00',
    });
    expect(answer.status).toBe(201);
    const { key, ...second } = answer.json;
    expect(second).toEqual({
      id: UUID,
      name: 'Second',
      created_by: owner.id,
      created_at: TIME,
      expires_at: '2031-01-31T11:00:00.000Z',
    });
    expect((await to(`/applications/${id}/keys`)).json).toEqual([keys[0], second]);
    expect((await to(`/applications/${id}/keys?id=${second.id}&id=${randomUUID()}`)).json).toEqual([second]);
    expect((await to(`/applications/${id}/keys?type=public`)).json).toEqual([]);
    expect((await to(`/applications/${id}/keys/${second.id}`)).json).toEqual(second);
    expect((await to('/permissions', { key })).status).toBe(200);
    expect((await remove(`/applications/${id}/keys/${second.id}`)).status).toBe(204);
    expectProblem(await to('/permissions', { key }), 401, 'key_refused');
    for (const method of ['GET', 'DELETE'])
      expectProblem(await to(`/applications/${id}/keys/${second.id}`, { method }), 404, 'key_not_found');
    expect((await to(`/applications/${id}`)).json.keys).toEqual(keys);
    const other = await created();
    for (const path of [other.keys[0].id, `${other.keys[0].id}/uses`, 'nonsense'])
      expectProblem(await to(`/applications/${id}/keys/${path}`), 404, 'key_not_found');
  });

  it('are shown with their last use', async () => {
    const { id, key } = await created();
    await to('/permissions', { key });
    const lastUse = async () => (await to(`/applications/${id}`)).json.keys[0].last_used_at;
    await until(async () => (await lastUse()) !== undefined, 5_000);
    expect(await lastUse()).toEqual(TIME);
    expect((await to('/applications')).json.data.at(-1).keys[0].last_used_at).toEqual(TIME);
  });

  it('expire, and are no longer listed then', async () => {
    const { id } = await created({ ...shop, create_key: false });
    const expires_at = new Date(Date.now() + 3_000).toISOString();
    const { key, ...expiring } = (await post(`/applications/${id}/keys`, { expires_at })).json;
    expect((await to(`/applications/${id}/keys`)).json).toEqual([expiring]);
    await until(async () => (await to('/permissions', { key })).status === 401);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_at));
    expect((await to(`/applications/${id}/keys`)).json).toEqual([]);
    expectProblem(await to(`/applications/${id}/keys/${expiring.id}`), 404, 'key_not_found');
  });

  it('are replaced, immediately or after a grace period', async () => {
    const { id, key } = await created();
    const slow = await post(`/applications/${id}/regenerate`, { grace_seconds: 60, name: 'Slow' });
    expect(slow.json).toMatchObject({ id, key: KEY });
    expect(slow.json.keys).toMatchObject([{ expires_at: TIME }, { name: 'Slow' }]);
    expect(Date.parse(slow.json.keys[0].expires_at) - Date.now()).toBeGreaterThan(50_000);
    for (const one of [key, slow.json.key]) expect((await to('/permissions', { key: one })).status).toBe(200);
    const quick = await post(`/applications/${id}/regenerate`);
    expect(quick.json.keys).toHaveLength(1);
    for (const one of [key, slow.json.key])
      expectProblem(await to('/permissions', { key: one }), 401, 'key_refused');
    expect((await to('/permissions', { key: quick.json.key })).status).toBe(200);
  });

  it('are limited in number', async () => {
    const { id } = await created();
    for (let n = 1; n < QUOTAS.liveKeys; n += 1)
      expect((await post(`/applications/${id}/keys`)).status).toBe(201);
    const full = await post(`/applications/${id}/keys`);
    expectProblem(full, 409, 'quota_exceeded');
    expect(full.headers.get('retry-after')).toBeNull();
    expectProblem(await post(`/applications/${id}/regenerate`, { grace_seconds: 1 }), 409, 'quota_exceeded');
    expect((await post(`/applications/${id}/regenerate`, {})).status).toBe(200);
  });

  it.each<[string, string, object, string]>([
    ['keys', 'a name of 201 characters', { name: 'x'.repeat(201) }, 'name'],
    ['keys', 'an expiry now', { expires_at: '2020-01-01' }, 'expires_at'],
    ['keys', 'an array', [], 'body'],
    ['regenerate', 'a grace that is negative', { grace_seconds: -1 }, 'grace_seconds'],
    ['regenerate', 'a grace of more than a year', { grace_seconds: 31_536_001 }, 'grace_seconds'],
    ['regenerate', 'half a second of grace', { grace_seconds: 0.5 }, 'grace_seconds'],
    ['regenerate', 'a grace in words', { grace_seconds: '60' }, 'grace_seconds'],
  ])('are refused to %s with %s', async (what, _, body, field) => {
    const { id, keys } = await created();
    const answer = await post(`/applications/${id}/${what}`, body);
    expectProblem(answer, 400, 'validation_failed', field);
    expect((await to(`/applications/${id}/keys`)).json).toEqual(keys);
  });
});

describe('a conditional request about keys, by the entity tag of their Application', () => {
  const routes: readonly [string, string, number][] = [
    ['POST', 'keys', 201],
    ['POST', 'regenerate', 200],
    ['DELETE', 'keys/{id}', 204],
  ];
  const given = async (method: string, route: string) => {
    const { id, keys } = await created();
    const path = `/applications/${id}`;
    const tag = async (): Promise<string> => (await to(path)).headers.get('etag') ?? '';
    const send = (ifMatch: string, keyId: string = keys[0].id) =>
      to(`${path}/${route.replace('{id}', keyId)}`, { method, headers: { 'If-Match': ifMatch } });
    return { path, tag, send };
  };

  it.each(routes)(
    '%s %s is accepted with *, and with a list that has the tag, which a new key changes',
    async (method, route, status) => {
      const { path, tag, send } = await given(method, route);
      const before = await tag();
      const added = (await post(`${path}/keys`)).json;
      expectProblem(await send(before), 412, 'precondition_failed');
      expect((await send(`"99", ${await tag()}`)).status).toBe(status);
      const last = route === 'keys/{id}' ? added.id : undefined;
      expect((await send('*', last)).status).toBe(status);
    },
  );

  it.each(routes)(
    '%s %s is refused with the current tag once the Application has changed, and changes nothing',
    async (method, route) => {
      const { path, tag, send } = await given(method, route);
      const old = await tag();
      await put(path, { name: 'Renamed' });
      const [before, current] = [await by.count(), await tag()];
      for (const sent of [old, `W/${current}`, '"99"']) {
        const refused = await send(sent);
        expectProblem(refused, 412, 'precondition_failed');
        expect(refused.headers.get('etag')).toBe(current);
      }
      const unquoted = await send('3');
      expectProblem(unquoted, 400, 'validation_failed', 'If-Match');
      expect(await by.count()).toBe(before);
    },
  );
});

it.each(['PUT', 'DELETE', 'POST'])('/applications/key does not support %s', async (method) => {
  const answer = await to('/applications/key', { method, body: method === 'DELETE' ? undefined : shop });
  expectProblem(answer, 405, 'method_not_allowed');
  expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS');
});

describe('the list of Applications', () => {
  /** All ids in the order of their creation; two existed before. */
  const seven = async (): Promise<readonly string[]> => {
    const before = (await to('/applications')).json.data.map((application: { id: string }) => application.id);
    const types = ['public', 'private', 'management', 'private', 'public', 'private'] as const;
    const made: string[] = [];
    for (const type of types) made.push((await by.newApplication(tenantId, type)).id);
    expect((await remove(`/applications/${made[1]}`)).status).toBe(204);
    return [...before, ...made.filter((_, n) => n !== 1)];
  };
  const idsOf = ({ json }: ApiResponse): readonly string[] =>
    json.data.map((application: { id: string }) => application.id);

  it('is paged in the order of creation, without deleted ones', async () => {
    const ids = await seven();
    const whole = await to('/applications?size=1000');
    expect(idsOf(whole)).toEqual(ids);
    expect(whole.json.pagination).toEqual({ total_items: 7, page_number: 1, page_size: 100, total_pages: 1 });
    const pages = [1, 2, 3, 4, 5].map((page) => to(`/applications?size=2&page=${page}`).then(idsOf));
    expect((await Promise.all(pages)).map((page) => page.length)).toEqual([2, 2, 2, 1, 0]);
    expect((await Promise.all(pages)).flat()).toEqual(ids);
  });

  it('is walked by cursor while Applications are created and deleted', async () => {
    const ids = await seven();
    const seen: string[] = [];
    let start = '';
    do {
      const answer = await to(`/applications?size=2${start}`);
      seen.push(...idsOf(answer));
      const { after, next } = answer.json.pagination;
      expect(next).toBe(after);
      start = after === undefined ? '' : `&start=${encodeURIComponent(after)}`;
      if (seen.length === 2) await remove(`/applications/${ids[2]}`);
    } while (start !== '');
    expect(seen).toEqual(ids.filter((_, n) => n !== 2));
  });

  it('is filtered by ids and types, each of which may be repeated', async () => {
    const ids = await seven();
    const some = [ids[6], ids[0]];
    expect(
      idsOf(await to(`/applications?id=${some[0]}&id=${some[1]?.toUpperCase()}&id=${randomUUID()}`)),
    ).toEqual([ids[0], ids[6]]);
    const byType = async (query: string) => (await to(`/applications?${query}`)).json.pagination.total_items;
    expect(await byType('type=public')).toBe(2);
    expect(await byType('type=public&type=private')).toBe(4);
    expect(await byType(`type=public&id=${ids[0]}`)).toBe(0);
    expect(await byType('type=')).toBe(7);
    const { json } = await to('/applications?type=private&size=1');
    const rest = await to(`/applications?type=private&start=${encodeURIComponent(json.pagination.after)}`);
    expect(rest.json.data).toHaveLength(1);
  });

  it('shows nothing of another tenant', async () => {
    const other = await by.newTenant();
    expect(idsOf(await to(`/applications?id=${other.id}`))).toEqual([]);
  });

  it.each([
    ['size=0', 'size'],
    ['page=0', 'page'],
    ['size=x', 'size'],
    ['id=nonsense', 'id'],
    ['id=11111111-2222-4333-8444-555555555555&id=x', 'id'],
    ['type=secret', 'type'],
    ['start=forged', 'start'],
    ['entity_type=token', 'entity_type'],
    ['page=1&page=2', 'page'],
    ['id[]=x', 'id[]'],
  ])('is refused with %s', async (query, field) => {
    const answer = await to(`/applications?${query}`);
    expectProblem(answer, 400, 'validation_failed', field);
  });

  it('goes on from a cursor also with other filters, and accepts none of another list', async () => {
    const ids = await seven();
    const { after } = (await to('/applications?size=5')).json.pagination;
    const start = `start=${encodeURIComponent(after)}`;
    const types = idsOf(await to('/applications?type=management'));
    expect(idsOf(await to(`/applications?${start}&type=management`))).toEqual(
      types.filter((id) => ids.indexOf(id) >= 5),
    );
    const log = (await to('/logs?size=1')).json.pagination.after;
    for (const answer of [
      await to(`/applications?start=${encodeURIComponent(log)}`),
      await to(`/logs?${start}`),
    ])
      expectProblem(answer, 400, 'validation_failed');
  });
});

describe('managing Applications', () => {
  it('refuses privilege escalation in every form, and records it', async () => {
    const held = ['application:read', 'application:create', 'application:update', 'application:delete'];
    const limited = await by.newApplication(tenantId, 'management', ...held);
    const strong = await by.newApplication(tenantId, 'management', 'tenant:delete');
    const secret = await by.newApplication(tenantId, 'private', 'token:read');
    const before = await by.count();
    const { key } = limited;
    const attempts = [
      () => post('/applications', { name: 'A', type: 'management', permissions: ['tenant:delete'] }, { key }),
      () => put(`/applications/${limited.id}`, { name: 'A', permissions: [...held, 'log:read'] }, { key }),
      () => post(`/applications/${strong.id}/keys`, {}, { key }),
      () => post(`/applications/${secret.id}/keys`, {}, { key }),
      () => post(`/applications/${strong.id}/regenerate`, {}, { key }),
    ];
    for (const attempt of attempts) {
      const answer = await attempt();
      expectProblem(answer, 403, 'permission_not_held');
      expect(answer.json.missing_permissions.length).toBeGreaterThan(0);
    }
    expect(await by.count()).toBe(before);
    const fine = await post('/applications', { name: 'A', type: 'management', permissions: held }, { key });
    expect(fine.status).toBe(201);
  });

  it("lets a caller end its own access, down to the tenant's last managing key", async () => {
    const self = `/applications/${owner.id}`;
    expect((await remove(`${self}/keys/${owner.keyId}`)).status).toBe(204);
    expect((await to('/permissions')).status).toBe(401);
  });
});
