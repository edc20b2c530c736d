import { randomUUID } from 'node:crypto';
import { updateApplication } from '../../src/domain/applications';
import { besideForTests } from '../support/beside';
import { ask, type ApiResponse, type AskOptions } from '../support/http';
import { serviceForTests } from '../support/service';

const service = serviceForTests();
const by = besideForTests(service);
let tenantId: string;
let owner: { id: string; key: string; keyId: string };

beforeEach(async () => {
  ({ tenantId } = await by.newTenant());
  owner = await by.newOwner(tenantId);
});

const to = (path: string, asking: AskOptions = {}): Promise<ApiResponse> =>
  ask(`${service.url}${path}`, { key: owner.key, ...asking });
const post = (path: string, body: unknown) => to(path, { method: 'POST', body });
const shop = { name: 'Shop', type: 'private', permissions: ['token:create'] };
const idsIn = ({ json }: ApiResponse): string[] => json.data.map(({ id }: { id: string }) => id);

it('whoever has a key sees which one it is, for example one that leaked', async () => {
  const { json: second } = await post(`/applications/${owner.id}/keys`, { name: 'Second' });
  const first = await to('/applications/key');
  const other = await to('/applications/key', { key: second.key });
  expect([first.json.key_id, other.json.key_id]).toEqual([owner.keyId, second.id]);
  expect([first.headers.get('etag'), other.headers.get('etag')]).toEqual([null, null]);
  expect((await to(`/applications/${owner.id}`)).json).not.toHaveProperty('key_id');
});

it('the Tenant did not exist before it was created', async () => {
  const asked = `${service.url}/tenants/self?as_of=2000-01-01`;
  const response = await fetch(asked, { headers: { 'SVC-API-KEY': owner.key } });
  expect([response.status, await response.json()]).toEqual([
    404,
    expect.objectContaining({ code: 'not_found' }),
  ]);
  const [, at] = /"recorded_at":"([^"]+)"/.exec((await to('/events?limit=1')).text) ?? [];
  expect((await to(`/tenants/self?as_of=${at}`)).status).toBe(200);
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
    expect(idsIn(await asOf(before, '&type=private'))).toEqual([made.id]);
    expect(idsIn(await asOf('2000-01-01'))).toEqual([]);

    const one = (moment: string, id = made.id) =>
      to(`/applications/${id}?as_of=${encodeURIComponent(moment)}`);
    const { status, json, headers } = await one(before);
    expect([status, json, headers.get('etag')]).toEqual([200, asMade, null]);
    expect((await one(after)).json).toMatchObject({ name: 'Store', permissions: [], keys: [] });
    for (const nowhere of [await one('2000-01-01'), await one('2099-01-01'), await one(before, randomUUID())])
      expect([nowhere.status, nowhere.json.code]).toEqual([404, 'application_not_found']);
    const { key } = await by.newApplication(tenantId, 'management', 'application:read');
    expect((await to(`/applications/${made.id}?as_of=2099-01-01`, { key })).status).toBe(403);
  });

  it('have the keys that were valid when the event at a position was recorded', async () => {
    const { json: made } = await post('/applications', shop);
    const { json: key } = await post(`/applications/${made.id}/keys`, { expires_at: '2050-01-01T00:00:00Z' });
    const read = { id: randomUUID(), type: 'TokenRead', data: { entityId: 't' }, metadata: {} };
    const recordedAt = '2050-01-01T00:00:00.000Z';
    await by.log.append(by.streams.activity(tenantId), [{ ...read, recordedAt }], 'no_stream');
    const keysAt = async (position: string): Promise<string[]> =>
      (await asOf(position, `&id=${made.id}`)).json.data[0].keys.map(({ id }: { id: string }) => id);
    expect(await keysAt(await lastPosition())).toContain(key.id);
    expect(await keysAt('activity:0')).toEqual([made.keys[0].id]);
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
    const whole = (await asOf('2099-01-01', `&size=${seen.length}`)).json.pagination;
    expect(whole).not.toHaveProperty('after');
    expect(idsIn(await asOf('2099-01-01', '&size=3&page=2'))).toEqual(seen.slice(3, 6));
  });

  it('take no cursor of the current ones, nor those one of the past', async () => {
    await post('/applications', shop);
    const { after: past } = (await asOf('2099-01-01', '&size=1')).json.pagination;
    const { after: current } = (await to('/applications?size=1')).json.pagination;
    expect((await asOf('2099-01-01', `&start=${current}`)).status).toBe(400);
    expect((await to(`/applications?start=${past}`)).status).toBe(400);
  });

  it('need log:read, and a moment', async () => {
    const { key } = await by.newApplication(tenantId, 'management', 'application:read');
    expect(await to('/applications?as_of=2099-01-01', { key })).toMatchObject({
      status: 403,
      json: { required_permission: 'log:read' },
    });
    expect((await to('/applications?as_of=2099-01-01T00:00:00+01:00')).status).toBe(200);
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
