import { routes } from '../../src/http/api';
import { ALL_PERMISSIONS, beside } from '../support/beside';
import { ask, type ApiResponse } from '../support/http';
import { expectProblem } from '../support/problem';
import { serviceForTests } from '../support/service';

const shop = { name: 'Shop', type: 'private', permissions: ['token:create'] };

describe('the members of a body', () => {
  const service = serviceForTests({ DEMO: 'false' });
  let key = '';
  let application: Record<string, unknown> = {};
  const send = (method: string, path: string, body: unknown): Promise<ApiResponse> =>
    ask(`${service.url}${path.replace(':id', String(application['id']))}`, { key, method, body });

  beforeAll(async () => {
    ({ key } = await (await beside(service)).newTenant('Acme', ALL_PERMISSIONS));
    application = (await send('POST', '/applications', shop)).json;
  });

  /** Every request with a body, with the least that it accepts. */
  const requests: readonly (readonly [string, string, object])[] = [
    ['PUT', '/tenants/self', { name: 'Acme' }],
    ['POST', '/applications', { name: 'Shop', type: 'private' }],
    ['PUT', '/applications/:id', { name: 'Shop' }],
    ['POST', '/applications/:id/keys', {}],
    ['POST', '/applications/:id/regenerate', {}],
  ];

  it.each(requests)(
    'of %s %s are all known, or it is refused and changes nothing',
    async (method, path, body) => {
      expect((await send(method, path, body)).status).toBeLessThan(300);
      const before = (await send('GET', '/logs?size=1', undefined)).json.pagination.total_items;
      for (const name of ['x', 'Name', 'constructor', 'toString', 'a.b', '']) {
        const answer = await send(method, path, { ...body, [name]: 1 });
        expectProblem(answer, 400, 'validation_failed', name === '' ? 'body' : name);
      }
      expect((await send('GET', '/logs?size=1', undefined)).json.pagination.total_items).toBe(before);
    },
  );

  it.each([
    ['PUT', '/tenants/self', { name: 'A', setings: {} }, 'setings', 'settings'],
    [
      'PUT',
      '/tenants/self',
      { name: 'A', settings: { fingerprint_token: 'true' } },
      'settings.fingerprint_token',
      'fingerprint_tokens',
    ],
    ['POST', '/applications', { ...shop, permisions: [] }, 'permisions', 'permissions'],
    ['POST', '/applications/:id/keys', { expires_in: 3_600 }, 'expires_in', 'expires_at'],
    ['POST', '/applications/:id/regenerate', { grace: 3_600 }, 'grace', 'grace_seconds'],
  ])('%s %s %j: the nearest one is named', async (method, path, body, field, nearest) => {
    const { status, json } = await send(method, path, body);
    expect({ status, errors: json.errors }).toEqual({
      status: 400,
      errors: { [field]: [`is not a known member: did you mean ${nearest}?`] },
    });
  });

  const ofTenants = routes.filter(({ service: right }) => right === undefined);
  it.each(ofTenants.map(({ method, path }) => [method.toUpperCase(), path]))(
    'are refused in the query of %s %s if it does not have them',
    async (method, path) => {
      const target = path
        .replace(/:(?:application_)?id/, ':id')
        .replace(':key_id', String(application['id']));
      const found = requests.find(([m, p]) => m === method && p === target.replace('/keys/', '/'))?.[2];
      const body = path === '/keys/find' ? { digest: 'a'.repeat(64) } : found;
      const answer = await send(method, `${target}?unknown=1`, body);
      expectProblem(answer, 400, 'validation_failed', 'unknown');
    },
  );

  it('are refused where the past is not shown: today must not be taken for it', async () => {
    for (const path of ['/applications/:id/keys', '/tenants/self/reports/usage'])
      expect((await send('GET', `${path}?as_of=2026-01-01`, undefined)).status).toBe(400);
  });

  it('that responses show may be sent back, and are ignored', async () => {
    const { json: tenant } = await send('GET', '/tenants/self', undefined);
    const changed = { ...tenant, id: 'x', owner_id: 1, created_at: null, name: 'Sent back' };
    expect((await send('PUT', '/tenants/self', changed)).json).toMatchObject({
      ...tenant,
      name: 'Sent back',
      modified_at: expect.any(String),
      modified_by: expect.any(String),
    });
    const { json: own } = await send('GET', '/applications/:id', undefined);
    const { type: _, ...rest } = own;
    expect(
      (await send('PUT', '/applications/:id', { ...rest, name: 'Back', key: 'x', keys: 1 })).json,
    ).toMatchObject({ id: own.id, name: 'Back', keys: own.keys });
    expect((await send('POST', '/applications', { ...own, name: 'Copy' })).json).toMatchObject({
      name: 'Copy',
      keys: [expect.anything()],
    });
    const [first] = own.keys;
    expect((await send('POST', '/applications/:id/keys', { ...first, name: 'Copy' })).json).toMatchObject({
      name: 'Copy',
    });
  });

  it('named rules may be empty: there are no access rules', async () => {
    for (const rules of [[], null, undefined]) {
      expect((await send('POST', '/applications', { ...shop, rules })).status).toBe(201);
      expect((await send('PUT', '/applications/:id', { name: 'Shop', rules })).status).toBe(200);
    }
    const rule = { description: 'all', priority: 1, transform: 'mask', permissions: ['token:read'] };
    for (const [method, path] of [
      ['POST', '/applications'],
      ['PUT', '/applications/:id'],
    ] as const) {
      const { status, json } = await send(method, path, { ...shop, rules: [rule] });
      expect([status, json.errors]).toEqual([
        400,
        { rules: ['must be empty: access rules are not supported'] },
      ]);
    }
  });

  it('are reported up to a bound', async () => {
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`member_${at}`, 1]));
    const { json } = await send('PUT', '/tenants/self', { name: 'A', ...many });
    expect(Object.keys(json.errors)).toHaveLength(20);
  });
});
