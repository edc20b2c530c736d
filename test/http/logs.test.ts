import { randomUUID } from 'node:crypto';
import { besideForTests } from '../support/beside';
import { customerOf, idsOf, type Customer } from '../support/customers';
import { ask, rename, type ApiResponse } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact } from '../support/reported-facts';
import { serviceForTests } from '../support/service';

describe('audit logs', () => {
  const service = serviceForTests({ DEMO: 'false' });
  const by = besideForTests(service);

  const newCustomer = (since?: string): Promise<Customer> => customerOf(() => service, by, since);

  describe('GET /logs', () => {
    it('has a row for everything that was done, newest first, with exactly the specified fields and its source', async () => {
      const { tenantId, applicationId, get, raw } = await newCustomer();
      const response = await get();
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(response.headers.get('cache-control')).toBe('private, no-cache');
      expect(response.headers.get('svc-complete-until')).toBeNull();
      expect(Object.keys(response.json)).toEqual(['pagination', 'data']);
      const words: Readonly<Record<string, readonly [string, string, string]>> = {
        TenantCreated: ['tenant', 'create', 'Tenant created'],
        ApplicationCreated: ['application', 'create', 'Application created'],
        KeyAdded: ['key', 'create', 'Key added'],
      };
      const events = await raw();
      expect(events).toHaveLength(3);
      expect(response.json.data).toEqual(
        events.map(({ id, type, data, recordedAt }) => {
          const fields = data as Record<string, string>;
          const [entity_type, operation, message] = words[type]!;
          return {
            id,
            tenant_id: tenantId,
            actor_id: '00000000-0000-0000-0000-000000000000',
            actor_type: 'user',
            entity_type,
            entity_id: fields['keyId'] ?? fields['applicationId'] ?? tenantId,
            operation,
            message,
            created_at: recordedAt,
            source: 'decision',
          };
        }),
      );
      expect(response.json.data[1].entity_id).toBe(applicationId);
      expect(response.json.pagination).toEqual({
        total_items: 3,
        page_number: 1,
        page_size: 20,
        total_pages: 1,
      });
    });

    it('names the Application whose key was used', async () => {
      const { get, key, tenantId, applicationId } = await newCustomer();
      expect((await rename(service, key, 'B')).status).toBe(200);
      expect((await get('?size=1')).json.data).toEqual([
        expect.objectContaining({
          actor_id: applicationId,
          actor_type: 'application',
          entity_type: 'tenant',
          entity_id: tenantId,
          operation: 'update',
          message: 'Tenant updated',
        }),
      ]);
    });

    it('leaves out the actor of a fact that names none', async () => {
      const { get, report, tenantId } = await newCustomer();
      const data = { entityType: 'Invoice', operation: 'Sent', message: 'x'.repeat(300) };
      const actor = { type: 'user', id: randomUUID() };
      const [nobody, somebody] = await report(
        fact('ActivityReported', 'In-1', { data }),
        fact('CardUsed', 'c1', { data: { occurredAt: '2026-01-31T12:00:00+01:00' }, metadata: { actor } }),
      );
      const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect((await get('?size=2')).json.data).toEqual([
        {
          id: somebody,
          tenant_id: tenantId,
          actor_id: actor.id,
          actor_type: 'user',
          entity_type: 'card',
          entity_id: 'c1',
          operation: 'use',
          message: 'Card used',
          created_at,
          source: 'fact',
          occurred_at: '2026-01-31T11:00:00.000Z',
        },
        {
          id: nobody,
          tenant_id: tenantId,
          entity_type: 'invoice',
          entity_id: 'In-1',
          operation: 'sent',
          message: 'x'.repeat(250),
          created_at,
          source: 'fact',
        },
      ]);
    });

    it('adds no row and no event when it is read', async () => {
      const { get, key } = await newCustomer();
      const before = await by.count();
      const first = await get();
      await get('?page=2');
      await ask(`${service.url}/logs/entity-types`, { key });
      await ask(`${service.url}/tenants/self/reports/usage`, { key });
      expect((await get()).json).toEqual(first.json);
      expect(await by.count()).toBe(before);
    });
  });

  describe('the filters of GET /logs', () => {
    let customer: Customer;
    let ids: readonly string[];
    /** The tenant was created in the year before; the last clock was an hour behind. */
    const recorded: readonly (readonly [string, string, string])[] = [
      ['TokenCreated', 'a', '2021-01-31T10:00:00.000Z'],
      ['CardCreated', 'a', '2021-01-31T11:00:00.000Z'],
      ['TokenRead', 'a', '2021-01-31T12:00:00.000Z'],
      ['TokenRead', 'b', '2021-01-31T12:00:00.000Z'],
      ['TokenUsed', 'a b/c?d=é&', '2021-02-01T00:00:00.000Z'],
      ['CardUsed', 'b', '2021-02-01T00:00:00.001Z'],
      ['ProxyRead', 'a', '2021-01-31T23:00:00.001Z'],
    ];
    beforeAll(async () => {
      customer = await newCustomer('2020-01-01');
      const facts = recorded.map(([type, entityId, recordedAt]) => fact(type, entityId, { recordedAt }));
      ids = await customer.report(...facts);
    });
    /** The indexes of the rows above, newest first, without those that created the tenant. */
    const expectRows = (response: ApiResponse, places: readonly number[]) => {
      expect(response.status).toBe(200);
      const own = idsOf(response).filter((id) => ids.includes(id));
      expect(own.map((id) => ids.indexOf(id))).toEqual(places);
    };

    /** Which rows a filter finds: the tests of `projections/logs`. Which texts are dates: those of `domain/texts`. */
    it.each<[string, readonly number[]]>([
      ['', [6, 5, 4, 3, 2, 1, 0]],
      ['?entity_type=Token', [4, 3, 2, 0]],
      [`?entity_id=${encodeURIComponent('a b/c?d=é&')}`, [4]],
      ['?entity_type=&entity_id=&start_date=&end_date=&start=', [6, 5, 4, 3, 2, 1, 0]],
      ['?start_date=2021-01-31T14:00:00%2B02:00', [6, 5, 4, 3, 2]],
      ['?start_date=2021-01-31T14:00:00+02:00', [6, 5, 4, 3, 2]],
      ['?start_date=2021-01-31T12:00:00.0000001Z', [6, 5, 4]],
      ['?start_date=2021-01-31T11:00:00Z&end_date=2021-02-01&entity_type=token&entity_id=a', [2]],
      ['?entity_type=constructor', []],
      ["?entity_id=a'%20OR%201=1--", []],
      ['?operation=READ', [6, 3, 2]],
      ['?operation=read&start_date=2021-02-01', [6]],
      ['?actor_id=7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11', []],
      ['?trace_id=nowhere', []],
      ['?source=fact&end_date=2021-01-31T12:00:00Z', [1, 0]],
    ])('select by %s', async (query, places) => {
      const response = await customer.get(query);
      expectRows(response, places);
      const { total_items, total_pages, page_size } = response.json.pagination;
      expect([total_items, page_size]).toEqual([response.json.data.length, 20]);
      expect(total_pages).toBe(total_items === 0 ? 0 : 1);
    });

    it('have no totals where they are combined', async () => {
      const response = await customer.get('?operation=read&entity_id=a');
      expectRows(response, [6, 2]);
      expect(response.json.pagination).toEqual({ page_number: 1, page_size: 20 });
    });

    it('list the known parameters when one is misspelt', async () => {
      const { json } = await customer.get('?entity_typ=card');
      expect(json).toMatchObject({
        errors: {
          entity_typ: [
            'is not a parameter here; those are entity_type, entity_id, start_date, end_date, actor_id, operation, trace_id, source, page, size and start',
          ],
        },
      });
    });

    it('report a bounded number of misspelt parameters', async () => {
      const names = Array.from({ length: 1_000 }, (_, i) => `x${i}`);
      const { status, json } = await customer.get(`?${names.join('&')}`);
      expect([status, Object.keys(json.errors).length]).toEqual([400, 20]);
    });

    it.each<[string, string]>([
      ['?start_date=yesterday', 'start_date'],
      ['?end_date=2021-02-30', 'end_date'],
      [`?end_date=${'9'.repeat(1_000)}`, 'end_date'],
      ['?start_date=2021-02-01&end_date=2021-01-31', 'start_date'],
      ['?start_date=2021-01-31T12:00:00.001Z&end_date=2021-01-31T12:00:00Z', 'start_date'],
      ['?start_date=2021-01-31T12:00:00-01:00&end_date=2021-01-31T12:30:00Z', 'start_date'],
      ['?entity_typ=card', 'entity_typ'],
      ['?entity_type=card&Operation=read', 'Operation'],
      ['?operation=read&entity_type=token&page=2', 'page'],
      ['?actor_id=a&operation=read&page=1', 'page'],
      ['?trace_id=a&entity_id=a&page=2', 'page'],
      ['?source=fact&entity_type=token&page=1', 'page'],
      ['?source=facts', 'source'],
      ['?entity_id[$ne]=1', 'entity_id[$ne]'],
      ['?entity_id%5B%24ne%5D=1', 'entity_id[$ne]'],
      ['?entity_type[]=token', 'entity_type[]'],
      ['?__proto__=1&__proto__=2', '__proto__'],
      ['?entity_id=a&entity_id=b', 'entity_id'],
      ['?entity_type=token&entity_type=token', 'entity_type'],
      ['?start_date=2021-01-31&start_date=2021-01-31', 'start_date'],
      ['?page=1&page=2', 'page'],
      ['?size=1&size=2', 'size'],
      ['?start=&start=', 'start'],
      ...'0,-1,1.5,abc,,%201,1%20,+1,1e3,0x10,NaN,Infinity,００,-0'
        .split(',')
        .flatMap((text) => [
          [`?page=${text}`, 'page'] as [string, string],
          [`?size=${text}`, 'size'] as [string, string],
        ]),
    ])('refuse %s', async (query, field) => {
      const response = await customer.get(query);
      expectProblem(response, 400, 'validation_failed', field);
    });
  });

  describe('the pages of GET /logs', () => {
    let customer: Customer;
    let newestFirst: readonly string[];
    const TOTAL = 250;
    beforeAll(async () => {
      customer = await newCustomer();
      await customer.report(
        ...Array.from({ length: TOTAL - 3 }, (_, i) =>
          fact(i % 3 === 0 ? 'CardRead' : 'TokenRead', `e${i % 2}`),
        ),
      );
      newestFirst = (await customer.raw()).map((event) => event.id);
    });

    it.each([
      ['', 1, 20, 13],
      ['?page=2', 2, 20, 13],
      ['?page=14', 14, 20, 13],
      ['?size=1', 1, 1, 250],
      ['?size=9007199254740992&page=2', 2, 100, 3],
      ['?size=50&page=6', 6, 50, 5],
      ['?size=007&page=0002', 2, 7, 36],
      ['?page=1000000', 1_000_000, 20, 13],
      ['?page=9007199254740992', Number.MAX_SAFE_INTEGER, 20, 13],
    ])('%s', async (query, page, size, pages) => {
      const response = await customer.get(query);
      expect(response.status).toBe(200);
      const from = (page - 1) * size;
      expect(idsOf(response)).toEqual(newestFirst.slice(from, from + size));
      const more = from + size < TOTAL;
      expect(response.json.pagination).toEqual({
        total_items: TOTAL,
        page_number: page,
        page_size: size,
        total_pages: pages,
        ...(more ? { after: expect.any(String), next: expect.any(String) } : {}),
      });
      expect(response.json.pagination.next).toBe(response.json.pagination.after);
    });

    it('are counted from the cursor if both are given', async () => {
      const { after } = (await customer.get('?size=30')).json.pagination;
      const pageFrom = (page: number) => customer.get(`?size=30&start=${after}&page=${page}`);
      expect(idsOf(await customer.get(`?size=30&start=${after}`))).toEqual(newestFirst.slice(30, 60));
      expect(idsOf(await pageFrom(1))).toEqual(newestFirst.slice(30, 60));
      expect(idsOf(await pageFrom(3))).toEqual(newestFirst.slice(90, 120));
      const last = await pageFrom(8);
      expect(idsOf(last)).toEqual(newestFirst.slice(240));
      expect(last.json.pagination).toEqual({
        total_items: TOTAL,
        page_number: 8,
        page_size: 30,
        total_pages: 9,
      });
      expect(idsOf(await pageFrom(9))).toEqual([]);
    });
  });

  describe('a cursor of GET /logs', () => {
    let customer: Customer;
    let other: Customer;
    const cursorOf = async (of: Customer, query = ''): Promise<string> =>
      (await of.get(`?size=2${query}`)).json.pagination.after;
    const refused = async (of: Customer, start: string, query = '') =>
      expectProblem(
        await of.get(`?size=2${query}&start=${encodeURIComponent(start)}`),
        400,
        'validation_failed',
        'start',
      );
    beforeAll(async () => {
      [customer, other] = [await newCustomer(), await newCustomer()];
      for (const owner of [customer, other])
        await owner.report(...['a', 'a', 'b', 'b', 'a'].map((id) => fact('TokenRead', id)));
    });

    it('is opaque and URL-safe', async () => {
      const cursor = await cursorOf(customer);
      expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
      expect(cursor).toBe(await cursorOf(customer));
    });

    it('of another tenant is refused', async () => {
      await refused(other, await cursorOf(customer));
      await refused(customer, await cursorOf(other));
    });

    it('that is none is refused: truncated, extended, changed or made up', async () => {
      const cursor = await cursorOf(customer);
      const encoded = (text: string): string => Buffer.from(text).toString('base64url');
      const padded = encoded(`${randomUUID()} `);
      for (const bad of [
        cursor.slice(0, -1),
        cursor.slice(1),
        `${cursor}A`,
        `${cursor}=`,
        `${cursor} `,
        ` ${cursor}`,
        cursor + cursor,
        cursor.toUpperCase(),
        // The last letter has unused bits: another one may decode to the same.
        `${padded.slice(0, -1)}${padded.endsWith('A') ? 'B' : 'A'}`,
        encoded(randomUUID()),
        encoded(Buffer.from(cursor, 'base64url').toString().toUpperCase()),
        encoded('\0'),
        'null',
        '1',
        '{}',
        '\u0000',
        'x'.repeat(4_000),
      ])
        await refused(customer, bad);
    });
  });

  describe('GET /logs/entity-types', () => {
    it('lists the built-in types and those that occur, by display name', async () => {
      const { key, report } = await newCustomer();
      const activity = (entityType: string) =>
        fact('ActivityReported', 'x', { data: { entityType, operation: 'seen' } });
      await report(activity('Tenant_Member'), activity('zebra'), activity('APPLE'), activity('token'));
      const response = await ask(`${service.url}/logs/entity-types`, { key });
      expect(response.status).toBe(200);
      expect(response.json).toEqual([
        { display_name: 'Apple', value: 'apple' },
        { display_name: 'Application', value: 'application' },
        { display_name: 'Bank', value: 'bank' },
        { display_name: 'Card', value: 'card' },
        { display_name: 'Key', value: 'key' },
        { display_name: 'Proxy', value: 'proxy' },
        { display_name: 'Reactor', value: 'reactor' },
        { display_name: 'Tenant', value: 'tenant' },
        { display_name: 'Tenant member', value: 'tenant_member' },
        { display_name: 'Token', value: 'token' },
        { display_name: 'Zebra', value: 'zebra' },
      ]);
      for (const { value } of response.json)
        expect((await ask(`${service.url}/logs?entity_type=${value}`, { key })).status).toBe(200);
    });

    it('lists the first thousand types besides the built-in ones, and filters by every other', async () => {
      const { key, report } = await newCustomer();
      const other = (n: number) =>
        fact('ActivityReported', 'x', { data: { entityType: `type${1_000 - n}`, operation: 'seen' } });
      const list = async () => (await ask(`${service.url}/logs/entity-types`, { key })).json;
      // `key` is not a built-in type, and occurred first.
      await report(...Array.from({ length: 999 }, (_, n) => other(n)), other(5));
      const whole = await list();
      expect(whole).toHaveLength(1_007);
      await report(other(999), fact('BankRead', 'b'));
      expect(await list()).toEqual(whole);
      expect((await ask(`${service.url}/logs?entity_type=type1`, { key })).json.pagination.total_items).toBe(
        1,
      );
    });
  });
});
