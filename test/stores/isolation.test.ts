import * as fc from 'fast-check';
import { randomUUID } from 'node:crypto';
import { masked } from '../../src/domain/texts';
import { routes } from '../../src/http/api';
import { newKey } from '../../src/ledger/api-key';
import { beside } from '../support/beside';
import { crowdAt, type Crowd } from '../support/crowd';
import { customerOf, type Customer } from '../support/customers';
import type { ApiResponse, AskOptions } from '../support/http';
import { isolatedTenants, type IsolatedCaller, type IsolatedTenant } from '../support/isolated-tenants';
import { fewAtOnce, operatorAt } from '../support/operator';
import { seed, seeded } from '../support/property';
import { fact } from '../support/reported-facts';
import { serviceForTests } from '../support/service';

/** `npm run campaign -- isolation` sets more. */
const CASES = Number(process.env['CASES'] ?? 250);
const isCampaign = CASES > 1_000;
const MINUTES = 60_000 * Math.ceil(CASES / 1_000);

/** The permission that every endpoint requires, per the specification. */
const needed: Readonly<Record<string, string | undefined>> = {
  'GET /permissions': undefined,
  'GET /limits': undefined,
  'GET /logs': 'log:read',
  'GET /logs/counts': 'log:read',
  'GET /logs/csv': 'log:read',
  'GET /logs/entity-types': 'log:read',
  'GET /events': 'log:read',
  'GET /events/:id': 'log:read',
  'GET /events/:id/proof': 'log:read',
  'GET /tenants/self/evidence': 'log:read',
  'GET /tenants/self/evidence/consistency': 'log:read',
  'GET /tenants/self/evidence/key': 'log:read',
  'GET /tenants/self': 'tenant:read',
  'PUT /tenants/self': 'tenant:update',
  'DELETE /tenants/self': 'tenant:delete',
  'GET /tenants/self/reports/usage': 'report:read',
  'GET /applications': 'application:read',
  'POST /applications': 'application:create',
  'GET /applications/key': undefined,
  'GET /applications/:id': 'application:read',
  'PUT /applications/:id': 'application:update',
  'DELETE /applications/:id': 'application:delete',
  'POST /applications/:id/regenerate': 'application:update',
  'GET /applications/:application_id/keys': 'application:read',
  'POST /applications/:application_id/keys': 'application:update',
  'GET /applications/:application_id/keys/:key_id': 'application:read',
  'GET /applications/:application_id/keys/:key_id/uses': 'application:read',
  'DELETE /applications/:application_id/keys/:key_id': 'application:update',
  'POST /keys/find': 'application:read',
  'POST /facts': 'a service',
  'POST /keys/verify': 'a service',
  'GET /keys/verify': 'a service',
};

const mayHold = (type: string, permission: string): boolean => {
  if (!permission.startsWith('token:')) return type === 'management';
  return type === 'private' || (type === 'public' && /^token:(create|update)$/.test(permission));
};

/** What takes the place of the id in a path: an id of the caller's own tenant, or of another. */
interface Endpoint {
  readonly method: string;
  readonly path: string;
  readonly target?: 'own' | 'other';
}

const endpoints = routes.flatMap(({ method, path }): readonly Endpoint[] => {
  const endpoint = { method: method.toUpperCase(), path };
  const takesId = path.startsWith('/applications/:id');
  return takesId ? (['own', 'other'] as const).map((target) => ({ ...endpoint, target })) : [endpoint];
});

/** The status of a request that passes every check but the last. */
const passedWith = ({ method, path, target }: Endpoint): number => {
  if (target === 'other' || path.startsWith('/events/:id')) return 404;
  if (path === '/keys/find') return 400;
  if (path === '/applications' && method === 'POST') return 400;
  return method === 'GET' ? 200 : 412;
};

const bodyOf = (method: string): AskOptions => {
  if (method === 'DELETE') return {};
  return { body: method === 'PUT' ? { name: 'B' } : {} };
};

/** Writes pass every check but the last: `If-Match` fails or the body is missing, so nothing changes. */
const asking = (method: string): AskOptions =>
  method === 'GET' ? {} : { method, headers: { 'If-Match': '"999999"' }, ...bodyOf(method) };

const states = ['valid', 'revoked', 'expired', 'malformed'] as const;
type State = (typeof states)[number];

const keyOf = ({ keys }: IsolatedCaller, state: State, at: number): string => {
  if (state !== 'malformed') return keys[state].key;
  const { key } = keys.valid;
  const place = at % key.length;
  return `${key.slice(0, place)}${key[place] === 'a' ? 'b' : 'a'}${key.slice(place + 1)}`;
};

/** A response without the parts that differ from request to request. */
const essence = ({ status, headers, text }: ApiResponse) => {
  const changing = new Set([
    'date',
    'svc-trace-id',
    'connection',
    'keep-alive',
    'content-length',
    'ratelimit',
  ]);
  return {
    status,
    headers: [...headers].filter(([name]) => !changing.has(name)),
    text: text
      .replace(/"trace_id":"[^"]+"/, '"trace_id":…')
      .replace(/"instance":"[^"]+"/, '"instance":…')
      .replace(/"detail":"There is nothing at [^"]+"/, '"detail":…'),
  };
};

describe('isolation', () => {
  const service = serviceForTests();
  let crowd: Crowd;
  let own: IsolatedTenant;
  let deleted: IsolatedTenant;
  let victim: Customer;
  let victimName: string;
  let victimKeyId: string;
  const received: string[] = [];
  /** A 404 echoes the requested path as `instance`, which reveals nothing. */
  const call = async (path: string, more: AskOptions, ...sent: readonly string[]): Promise<ApiResponse> => {
    const response = await crowd.ask(path, more);
    const whole = `${JSON.stringify([...response.headers])} ${response.text}`;
    const news = sent.reduce(
      (text, one) => text.replaceAll(encodeURIComponent(one), '').replaceAll(one, ''),
      whole,
    );
    received.push(news);
    return response;
  };

  /** What only the victim may know, and the ids that a request may name. */
  const artefacts = {
    uuid: [] as string[],
    cursor: [] as string[],
    entity: [] as string[],
    position: [] as string[],
    etag: [] as string[],
    idempotency: [] as string[],
  };
  const isOf = (caller: IsolatedCaller, permission: string): boolean =>
    caller.type === 'management' && caller.held.includes(permission);

  beforeAll(async () => {
    crowd = crowdAt(service.url);
    const by = await beside(service);
    const make = await isolatedTenants(service.folder);
    own = await make();
    deleted = await make();
    const master = deleted.callers.find((caller) => isOf(caller, 'tenant:delete'))!;
    const end = { key: master.keys.valid.key, method: 'DELETE', headers: { 'Idempotency-Key': 'the-end' } };
    expect((await crowd.ask('/tenants/self', end)).status).toBe(204);

    victim = await customerOf(() => service, by);
    victimName = `Victim ${randomUUID()}`;
    const put = (name: string, idempotency: string) =>
      crowd.ask('/tenants/self', {
        key: victim.key,
        method: 'PUT',
        body: { name },
        headers: { 'Idempotency-Key': idempotency },
      });
    for (let i = 0; i < 12; i += 1) {
      artefacts.idempotency.push(`victims-${randomUUID()}`);
      const { headers } = await put(i === 11 ? victimName : 'Same name', artefacts.idempotency[i]!);
      artefacts.etag.push(headers.get('etag')!);
    }
    artefacts.entity.push(...Array.from({ length: 8 }, () => `tok-${randomUUID()}`));
    const type = `victims-${randomUUID()}`;
    const activity = { entityType: type, operation: 'seen', message: `secret ${randomUUID()}` };
    await victim.report(
      ...artefacts.entity.map((entityId) => fact('TokenCreated', entityId)),
      fact('ActivityReported', 'thing', { data: activity }),
    );
    artefacts.entity.push(type);
    for (const query of ['?size=2', '?size=3&entity_type=token', `?size=1&entity_type=tenant`])
      artefacts.cursor.push((await victim.get(query)).json.pagination.after as string);
    const raw = await victim.raw();
    artefacts.uuid.push(victim.tenantId, victim.applicationId, ...raw.map(({ id }) => id));
    for (const { data } of raw) {
      const { keyId } = data as { keyId?: string };
      if (keyId === undefined) continue;
      victimKeyId = keyId;
      artefacts.uuid.push(keyId);
    }
    artefacts.position.push(...raw.map(({ position }) => position));
  });
  afterAll(() => crowd.close());

  it('covers every endpoint in its table', () => {
    expect(
      endpoints.map(({ method, path }) => `${method} ${path}`).filter((endpoint) => !(endpoint in needed)),
    ).toEqual([]);
  });

  it('holds for every endpoint × Application type × permission × key state × own and deleted tenant', async () => {
    const reference = essence(await call('/tenants/self', { key: newKey(randomUUID()).key }));
    expect(reference.status).toBe(401);
    const everything = [own, deleted].flatMap((tenant) =>
      tenant.callers.flatMap((caller, who) =>
        states.flatMap((state) =>
          endpoints.map((endpoint, which) => ({ tenant, caller, who, state, which, ...endpoint })),
        ),
      ),
    );
    expect(everything.length).toBe(2 * 96 * 4 * endpoints.length);
    // A campaign runs all of them. A bad key is refused before the endpoint matters, so every caller tries one at each
    // endpoint. With a good key, all who hold the permission ask, and every third of the others, which includes some of
    // each type.
    const isAsked = ({
      tenant,
      caller,
      who,
      state,
      which,
      method,
      path,
    }: (typeof everything)[number]): boolean => {
      if (isCampaign) return true;
      if (tenant !== own || state !== 'valid')
        return (who + states.indexOf(state)) % endpoints.length === which;
      return (who + which) % 3 === 0 || caller.held.includes(needed[`${method} ${path}`] ?? '');
    };
    const cases = everything.filter(isAsked);
    const wrong: string[] = [];
    const seen = new Map<number, number>();
    await fewAtOnce(
      cases.map((item, at) => ({ ...item, at })),
      async ({ tenant, caller, state, method, path, target, at }) => {
        const [application, key] =
          target === 'other'
            ? [victim.applicationId, victimKeyId]
            : [own.callers[0]!.applicationId, own.callers[0]!.keys.valid.id];
        const place = path.replace(/:(application_)?id/, application).replace(':key_id', key);
        const sent = target === 'other' ? [application, key] : [];
        const response = await call(place, { ...asking(method), key: keyOf(caller, state, at) }, ...sent);
        const permission = needed[`${method} ${path}`];
        const may =
          permission === undefined || (caller.held.includes(permission) && mayHold(caller.type, permission));
        const passed = passedWith({ method, path, ...(target === undefined ? {} : { target }) });
        const expected = tenant === deleted || state !== 'valid' ? 401 : may ? passed : 403;
        seen.set(expected, (seen.get(expected) ?? 0) + 1);
        const name = `${method} ${path} ${target ?? ''} ${caller.type} [${caller.held.join()}] ${state} ${tenant === own ? 'own' : 'deleted'}`;
        if (response.status !== expected) wrong.push(`${name}: ${response.status}, not ${expected}`);
        if (expected === 401 && JSON.stringify(essence(response)) !== JSON.stringify(reference))
          wrong.push(`${name}: ${response.text} is another 401`);
        if (expected === 403 && permission === 'a service') expect(response.json.code).toBe('service_only');
        else if (expected === 403)
          expect(response.json).toMatchObject({
            required_permission: permission,
            application_type: caller.type,
            assignable: mayHold(caller.type, permission ?? ''),
          });
      },
      16,
    );
    expect(wrong).toEqual([]);
    console.log(
      `isolation matrix: ${cases.length} of ${everything.length} requests, ${JSON.stringify(Object.fromEntries(seen))}`,
    );
  }, 120_000);

  it('holds for services, which no endpoint of a tenant answers', async () => {
    const add = 'service create --name Gateway --may facts,verify';
    const { key = '' } = await operatorAt(service.folder).json(add);
    for (const { method, path } of endpoints.filter(
      ({ path: one }) => !/^\/(facts|keys\/verify)$/.test(one),
    )) {
      const place = path.replace(/:(application_)?id/, victim.applicationId).replace(':key_id', victimKeyId);
      const sent = [victim.applicationId, victimKeyId];
      const { status, json } = await call(place, { ...asking(method), key }, ...sent);
      expect({ method, path, status, code: json?.code }).toMatchObject({ status: 403, code: 'tenant_only' });
    }
  });

  /** Values of the same shape that belong to nobody. */
  const nobodys: Readonly<Record<keyof typeof artefacts, (real: string, n: number) => string>> = {
    uuid: () => randomUUID(),
    cursor: () => Buffer.from(randomUUID()).toString('base64url'),
    entity: () => `tok-${randomUUID()}`,
    position: (real, n) => String(900_000_000 + n).padStart(real.length, '0'),
    etag: (_, n) => `"${500_000 + n}"`,
    idempotency: () => `victims-${randomUUID()}`,
  };

  /** Every way to make a request with something that belongs to another tenant. */
  const ways: readonly ((thing: string) => readonly [string, AskOptions])[] = [
    ...[
      'start',
      'entity_id',
      'entity_type',
      'page',
      'size',
      'start_date',
      'end_date',
      'tenant_id',
      'application_type',
      'after',
      'as_of',
      'actor_id',
      'trace_id',
      'key_id',
      'id',
      'type',
    ].flatMap((name) =>
      [
        '/logs',
        '/logs?size=1&entity_type=token',
        '/logs/csv',
        '/events?limit=3',
        '/tenants/self',
        '/permissions',
        '/tenants/self/reports/usage',
        '/tenants/self/evidence/consistency?from=0',
        '/applications',
        '/applications?size=1',
      ].map((path) => (thing: string): readonly [string, AskOptions] => [
        `${path}${path.includes('?') ? '&' : '?'}${name}=${encodeURIComponent(thing)}`,
        {},
      ]),
    ),
    ...['/tenants/', '/logs/', '/applications/', '/keys/', '/tenants/self/', '/events/'].flatMap((path) =>
      ['GET', 'PUT', 'DELETE'].map((method) => (thing: string): readonly [string, AskOptions] => [
        `${path}${encodeURIComponent(thing)}`,
        { method, ...(method === 'PUT' ? { body: { name: 'B' } } : {}) },
      ]),
    ),
    (thing) => [`/events/${encodeURIComponent(thing)}/proof`, {}],
    ...['keys', 'regenerate'].map((what) => (thing: string): readonly [string, AskOptions] => [
      `/applications/${encodeURIComponent(thing)}/${what}`,
      { method: 'POST' },
    ]),
    ...['GET', 'DELETE'].map((method) => (thing: string): readonly [string, AskOptions] => [
      `/applications/${own.callers[0]!.applicationId}/keys/${encodeURIComponent(thing)}`,
      { method },
    ]),
    ...['If-None-Match', 'If-Match', 'SVC-TENANT-ID', 'X-Tenant-Id', 'Range'].map(
      (header) =>
        (thing: string): readonly [string, AskOptions] => ['/tenants/self', { headers: { [header]: thing } }],
    ),
    (thing) => ['/events?limit=3', { headers: { 'Last-Event-ID': thing } }],
    (thing) => ['/tenants/self', { method: 'PUT', body: { name: 'B' }, headers: { 'If-Match': thing } }],
    (thing) => ['/tenants/self', { method: 'DELETE', headers: { 'If-Match': thing } }],
    (thing) => [
      '/tenants/self',
      { method: 'PUT', body: { name: 'Same name' }, headers: { 'Idempotency-Key': thing } },
    ],
    (thing) => [
      '/tenants/self',
      { method: 'PUT', body: { name: 'B', id: thing, tenant_id: thing, owner_id: thing } },
    ],
    (thing) => [
      '/tenants/self',
      { method: 'DELETE', headers: { 'If-Match': '"999999"', 'Idempotency-Key': thing } },
    ],
  ];

  const compared = (response: ApiResponse, thing: string) => {
    const { status, headers, text } = essence(response);
    const change = /"modified_at":"[^"]+"/;
    return {
      status,
      headers: headers.map(([name, value]) => [
        name,
        name === 'etag' ? 'a tag' : value.replaceAll(thing, '…'),
      ]),
      text: text
        .replaceAll(encodeURIComponent(thing), '…')
        .replaceAll(JSON.stringify(thing).slice(1, -1), '…')
        .replaceAll(thing, '…')
        .replaceAll(masked(thing), '…')
        // Each request uses the key of the one who asks once more.
        .replaceAll(/"last_used_at":"[^"]+"/g, '"last_used_at":…')
        .replace(change, '"modified_at":…'),
      page: response.json?.id === undefined ? undefined : response.json.id === own.id,
    };
  };

  /** What a text reveals about the victim. */
  const leaks = (text: string): readonly string[] => {
    const { etag: _, ...hidden } = artefacts;
    return [...Object.values(hidden).flat(), victimName, victim.key].filter((secret) =>
      text.includes(secret),
    );
  };

  const count = new Map<string, number>();
  const property = fc.asyncProperty(
    fc.nat(1_000_000),
    fc.constantFrom(...states, ...Array.from({ length: 8 }, () => 'valid' as const)),
    fc.nat(9).map((n) => n === 0),
    fc.constantFrom(...(Object.keys(artefacts) as (keyof typeof artefacts)[])),
    fc.nat(1_000),
    fc.nat(ways.length - 1),
    async (who, state, isDeleted, kind, which, way) => {
      // A position is a number, and so is a page number, which reveals nothing.
      fc.pre(kind !== 'position' || !ways[way]!('1')[0].includes('page=1'));
      const { callers } = isDeleted ? deleted : own;
      const managers = callers.filter(({ type, held }) => type === 'management' && held.length > 1);
      const caller = (who % 2 === 0 ? managers : callers)[
        who % (who % 2 === 0 ? managers.length : callers.length)
      ]!;
      const key = keyOf(caller, state, who);
      const thing = artefacts[kind][which % artefacts[kind].length]!;
      const other = nobodys[kind](thing, which);
      const both = async () => {
        const [path, more] = ways[way]!(thing);
        const [otherPath, otherMore] = ways[way]!(other);
        const theirs = await call(path, { key, ...more }, thing);
        const absent = await call(otherPath, { key, ...otherMore }, other);
        return [theirs, absent] as const;
      };
      let [theirs, absent] = await both();
      // Rows about what keys did appear by themselves: only a difference that persists counts.
      if (JSON.stringify(compared(theirs, thing)) !== JSON.stringify(compared(absent, other)))
        [theirs, absent] = await both();
      expect(compared(theirs, thing)).toEqual(compared(absent, other));
      count.set(`${theirs.status}`, (count.get(`${theirs.status}`) ?? 0) + 1);
    },
  );

  it(
    seeded(
      `makes the data of another tenant indistinguishable from data that does not exist, ${CASES} times`,
    ),
    async () => {
      await fc.assert(property, { seed, numRuns: CASES });
      console.log(
        `isolation property: ${CASES} cases, SEED=${seed}, ${JSON.stringify(Object.fromEntries(count))}`,
      );
      const usual = ['200', '400', '401', '403', '404'];
      const rare = ['405', '412'];
      const met = new Set([...count.keys(), ...(isCampaign ? [] : rare)]);
      expect([...met].toSorted()).toEqual([...usual, ...rare]);
    },
    MINUTES,
  );

  it('answers 401 to a repeated deletion of another tenant', async () => {
    const caller = own.callers.find(
      (candidate) => isOf(candidate, 'tenant:delete') && candidate.held.length > 1,
    )!;
    const gone = deleted.callers.filter((candidate) => isOf(candidate, 'tenant:delete'));
    const headers = { 'Idempotency-Key': 'the-end' };
    const again = (key: string) => call('/tenants/self', { key, method: 'DELETE', headers });
    expect((await again(gone[0]!.keys.valid.key)).status).toBe(204);
    expect((await again(gone[1]!.keys.valid.key)).status).toBe(401);
    expect((await again(gone[0]!.keys.revoked.key)).status).toBe(401);
    const refusedDeletion = await call('/tenants/self', {
      key: caller.keys.valid.key,
      method: 'DELETE',
      headers: { ...headers, 'If-Match': '"999999"' },
    });
    expect(refusedDeletion.status).toBe(412);
  });

  it('revealed nothing of the victim, and left the victim everything', async () => {
    expect(leaks(received.join('\n'))).toEqual([]);
    const { json } = await victim.get('?size=100');
    expect(json.pagination.total_items).toBe((await victim.raw()).length);
    expect(leaks(JSON.stringify(json)).length).toBeGreaterThan(20);
  });
});
