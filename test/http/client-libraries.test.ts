import { BasisTheory as BasisTheoryJs } from '@basis-theory/basis-theory-js';
import { BasisTheory, BasisTheoryClient } from '@basis-theory/node-sdk';
import { besideForTests } from '../support/beside';
import { ask } from '../support/http';
import { fact, reportFacts } from '../support/reported-facts';
import { allProjected, serviceForTests } from '../support/service';
import { until } from '../support/waiting';

const FIRST_PERMISSION = {
  type: 'token:create',
  description: 'Create tokens',
  applicationTypes: ['public', 'private'],
};

describe('client libraries', () => {
  const service = serviceForTests({ HEADER_PREFIX: 'BT', HOST: 'localhost' });
  const by = besideForTests(service);
  let tenantId: string;
  let key: string;
  let id: string;

  beforeEach(async () => {
    ({ tenantId, key, id } = await by.newTenant('Acme'));
  });

  const rejection = (work: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(work).then(
      () => Promise.reject(new Error('It was not refused.')),
      (error: unknown) => error,
    );

  const report = async () => {
    const { tenantId: ofTenant, id: actorId } = await by.newTenant();
    const reader = await by.newApplication(ofTenant, 'management', 'log:read', 'report:read');
    const facts = Array.from({ length: 50 }, (_, i) =>
      fact(i % 2 === 0 ? 'TokenCreated' : 'CardRead', `e${i % 10}`, {
        metadata: i === 0 ? {} : { actor: { type: 'application', id: actorId } },
      }),
    );
    await reportFacts(service.folder, ofTenant, facts);
    const headers = { 'BT-API-KEY': reader.key };
    await until(
      async () => (await ask(`${service.url}/logs`, { headers })).json.pagination.total_items === 55,
    );
    await allProjected(service);
    const own = (await by.events()).filter((event) => event.stream.endsWith(ofTenant)).toReversed();
    return { key: reader.key, newestFirst: own.map((event) => event.id), ofTenant, actorId };
  };
  let shared: ReturnType<typeof report> | undefined;
  /** A tenant with fifty facts about tokens and cards, and a key that may read the resulting data. */
  const reported = () => (shared ??= report());

  const owner = () => by.newOwner(tenantId);

  describe('@basis-theory/node-sdk', () => {
    const client = (apiKey: string) => new BasisTheoryClient({ baseUrl: service.url, apiKey, maxRetries: 0 });

    it('lists permissions', async () => {
      const all = await client(key).permissions.list();
      expect(all).toHaveLength(30);
      expect(all[0]).toEqual(FIRST_PERMISSION);
      expect(await client(key).permissions.list({ applicationType: 'public' })).toHaveLength(2);
    });

    it('reads and updates the Tenant', async () => {
      const self = client(key).tenants.self;
      const before = await self.get();
      expect(before).toMatchObject({ id: tenantId, name: 'Acme' });
      expect(before.createdAt).toBeInstanceOf(Date);
      const settings = { fingerprint_tokens: 'true' };
      const updated = await self.update({ name: 'Renamed', settings });
      expect(updated).toMatchObject({
        name: 'Renamed',
        modifiedBy: id,
        settings: { fingerprint_tokens: 'true', deduplicate_tokens: 'false' },
      });
      expect(await self.get()).toEqual(updated);
    });

    it('applies an update once with an idempotency key', async () => {
      const self = client(key).tenants.self;
      const before = await by.count();
      const first = await self.update({ name: 'Once' }, { idempotencyKey: 'k' });
      expect(await self.update({ name: 'Once' }, { idempotencyKey: 'k' })).toEqual(first);
      expect(await by.count()).toBe(before + 1);
    });

    it('sends the trace id and reads it back', async () => {
      const { rawResponse } = await client(key).tenants.self.get({ correlationId: 'mine' }).withRawResponse();
      expect(rawResponse.headers.get('bt-trace-id')).toBe('mine');
    });

    it('lists all logs with its own paging', async () => {
      const { key: readerKey, newestFirst, ofTenant, actorId } = await reported();
      const rows: BasisTheory.Log[] = [];
      for await (const row of await client(readerKey).logs.list({ size: 7 })) rows.push(row);
      expect(rows.map((row) => row.id)).toEqual(newestFirst);
      expect(rows[0]).toEqual({
        id: newestFirst[0],
        tenantId: ofTenant,
        actorId,
        actorType: 'application',
        entityType: 'card',
        entityId: 'e9',
        operation: 'read',
        message: 'Card read',
        createdAt: expect.any(Date),
        source: 'fact',
      });
      expect(rows[49]!.actorId).toBeUndefined();
      const default_: BasisTheory.Log[] = [];
      for await (const row of await client(readerKey).logs.list()) default_.push(row);
      expect(default_).toEqual(rows);
    });

    it('lists filtered logs, page by page and by cursors', async () => {
      const { key: readerKey } = await reported();
      const { logs } = client(readerKey);
      const ofTokens = await logs.list({
        entityType: 'token',
        startDate: new Date('2020-01-01'),
        endDate: new Date('2099-01-01'),
        size: 10,
      });
      const rows = [...ofTokens.data];
      while (ofTokens.hasNextPage()) rows.push(...(await ofTokens.getNextPage()).data);
      expect(rows).toHaveLength(25);
      expect(new Set(rows.map((row) => row.entityType))).toEqual(new Set(['token']));

      const listed = await logs.list({ entityId: 'e1', size: 3 });
      const page = (listed as unknown as { response: BasisTheory.LogPaginatedList }).response;
      expect(page.pagination).toMatchObject({ totalItems: 5, pageNumber: 1, pageSize: 3, totalPages: 2 });
      const start = page.pagination?.after ?? '';
      const rest = await logs.list({ entityId: 'e1', size: 3, start });
      expect(rest.data).toHaveLength(2);
      const fromCursor: BasisTheory.Log[] = [];
      for await (const row of rest) fromCursor.push(row);
      expect(fromCursor).toHaveLength(2);
    });

    it('lists entity types and reads the usage report', async () => {
      const { key: readerKey } = await reported();
      const types = await client(readerKey).logs.getEntityTypes();
      expect(types).toContainEqual({ displayName: 'Token', value: 'token' });
      expect(types).toHaveLength(8);
      expect(await client(readerKey).tenants.self.getUsageReports()).toMatchObject({
        token_report: {
          metrics_by_type: { token: { count: 5 }, card: { count: 0 } },
          included_monthly_active_tokens: 0,
          monthly_active_tokens: 10,
        },
      });
    });

    it('manages Applications and keys through every call it has', async () => {
      const { applications, applicationKeys } = client((await owner()).key);
      const made = await applications.create({
        name: 'Shop',
        type: 'private',
        permissions: ['token:create'],
      });
      expect(made).toMatchObject({ name: 'Shop', type: 'private', tenantId, permissions: ['token:create'] });
      expect(made.key).toMatch(/^key_/);
      expect(made.createdAt).toBeInstanceOf(Date);
      const applicationId = made.id ?? '';
      const { key: _, ...withoutKey } = made;
      expect(await applications.get(applicationId)).toEqual(withoutKey);
      expect(await client(made.key ?? '').applications.getByKey()).toMatchObject({ id: applicationId });
      const bare = await applications.create({ name: 'Bare', type: 'public', createKey: false });
      expect([bare.key, bare.keys]).toEqual([undefined, []]);

      const updated = await applications.update(applicationId, { name: 'Renamed', permissions: [] });
      expect(updated).toMatchObject({ name: 'Renamed', permissions: [] });
      expect(updated.modifiedAt).toBeInstanceOf(Date);

      const second = await applicationKeys.create(applicationId);
      expect(second.key).toMatch(/^key_/);
      const keys = await applicationKeys.list(applicationId);
      expect(keys.map(({ id: keyId }) => keyId)).toEqual([made.keys?.[0]?.id, second.id]);
      expect(
        await applicationKeys.list(applicationId, { id: [second.id ?? ''], type: 'private' }),
      ).toHaveLength(1);
      expect(await applicationKeys.get(applicationId, second.id ?? '')).toMatchObject({ id: second.id });
      await applicationKeys.delete(applicationId, second.id ?? '');
      expect(await rejection(applicationKeys.get(applicationId, second.id ?? ''))).toBeInstanceOf(
        BasisTheory.NotFoundError,
      );

      const listed: (string | undefined)[] = [];
      for await (const one of await applications.list({ size: 1 })) listed.push(one.id);
      expect(listed.slice(-2)).toEqual([applicationId, bare.id]);
      expect(listed).toHaveLength(4);
      const some = await applications.list({
        id: [applicationId, bare.id ?? ''],
        type: ['public', 'management'],
      });
      expect(some.data.map((application) => application.id)).toEqual([bare.id]);

      await applications.delete(applicationId);
      expect(await rejection(applications.get(applicationId))).toBeInstanceOf(BasisTheory.NotFoundError);
      expect(await rejection(client(made.key ?? '').permissions.list())).toBeInstanceOf(
        BasisTheory.UnauthorizedError,
      );
    });

    it('creates an Application once with an idempotency key', async () => {
      const { applications, applicationKeys } = client((await owner()).key);
      const wanted = { name: 'Once', type: 'private' };
      const { key: first, ...made } = await applications.create(wanted, { idempotencyKey: 'a' });
      expect(first).toMatch(/^key_/);
      expect(await applications.create(wanted, { idempotencyKey: 'a' })).toEqual(made);
      const { key: more, ...added } = await applicationKeys.create(made.id ?? '', { idempotencyKey: 'b' });
      expect(more).toMatch(/^key_/);
      expect(await applicationKeys.create(made.id ?? '', { idempotencyKey: 'b' })).toEqual(added);
    });

    it('deletes the Tenant, whose key is then refused', async () => {
      await client(key).tenants.self.delete();
      expect(await rejection(client(key).tenants.self.get())).toBeInstanceOf(BasisTheory.UnauthorizedError);
    });

    it('reports typed errors', async () => {
      const invalid = await rejection(client(key).tenants.self.update({ name: '' }));
      expect(invalid).toBeInstanceOf(BasisTheory.BadRequestError);
      expect((invalid as BasisTheory.BadRequestError).body).toMatchObject({
        status: 400,
        title: 'One or more validation errors occurred.',
        errors: { name: ['must not be blank'] },
      });
      const limited = await by.newApplication(tenantId, 'public', 'token:create');
      const denied = await rejection(client(limited.key).tenants.self.get());
      expect(denied).toBeInstanceOf(BasisTheory.ForbiddenError);
      expect((denied as BasisTheory.ForbiddenError).body).toMatchObject({
        status: 403,
        required_permission: 'tenant:read',
        assignable: false,
      });
      const stranger = await rejection(client('nonsense').permissions.list());
      expect(stranger).toBeInstanceOf(BasisTheory.UnauthorizedError);
      expect((stranger as BasisTheory.UnauthorizedError).body).toMatchObject({
        status: 401,
        code: 'key_refused',
      });
    });
  });

  describe('@basis-theory/basis-theory-js', () => {
    const client = (apiKey: string) =>
      new BasisTheoryJs().init(apiKey, { apiBaseUrl: service.url, disableTelemetry: true });

    it('lists permissions', async () => {
      const bt = await client(key);
      const all = await bt.permissions.list();
      expect(all).toHaveLength(30);
      expect(all[0]).toEqual(FIRST_PERMISSION);
      expect(await bt.permissions.list({ applicationType: 'private' })).toHaveLength(6);
    });

    it('reads, updates and deletes the Tenant', async () => {
      const { tenants } = await client(key);
      expect(await tenants.retrieve()).toMatchObject({
        id: tenantId,
        name: 'Acme',
        settings: { fingerprintTokens: 'false', deduplicateTokens: 'false' },
      });
      const updated = await tenants.update({ name: 'Renamed', settings: { deduplicateTokens: 'true' } });
      expect(updated).toMatchObject({
        name: 'Renamed',
        modifiedBy: id,
        settings: { fingerprintTokens: 'false', deduplicateTokens: 'true' },
      });
      expect(await tenants.retrieve()).toEqual(updated);
      await tenants.delete();
      expect(await rejection(tenants.retrieve())).toMatchObject({ status: 401 });
    });

    it('applies an update once with an idempotency key', async () => {
      const { tenants } = await client(key);
      const before = await by.count();
      const options = { idempotencyKey: 'k', correlationId: 'mine' };
      const first = await tenants.update({ name: 'Once' }, options);
      expect(await tenants.update({ name: 'Once' }, options)).toEqual(first);
      expect(await by.count()).toBe(before + 1);
      expect((await by.events()).at(-1)!.metadata).toMatchObject({ traceId: 'mine' });
    });

    it('lists all logs, by pages and by cursors', async () => {
      const { key: readerKey, newestFirst, ofTenant, actorId } = await reported();
      const { logs } = await client(readerKey);
      const byPages: unknown[] = [];
      for (let page = 1; ; page += 1) {
        const { data } = await logs.list({ page, size: 9 });
        if (data.length === 0) break;
        byPages.push(...data.map((row) => (row as { id?: string }).id));
      }
      expect(byPages).toEqual(newestFirst);
      const byCursors: unknown[] = [];
      let start: string | undefined;
      do {
        const { data, pagination } = await logs.list({ size: 9, ...(start === undefined ? {} : { start }) });
        byCursors.push(...data.map((row) => (row as { id?: string }).id));
        start = pagination.after;
      } while (start !== undefined);
      expect(byCursors).toEqual(newestFirst);
      const { data, pagination } = await logs.list({
        entityType: 'card',
        entityId: 'e1',
        startDate: '2020-01-01',
      });
      expect(pagination).toEqual({ totalItems: 5, pageNumber: 1, pageSize: 20, totalPages: 1 });
      expect(data[0]).toMatchObject({ tenantId: ofTenant, actorId, entityType: 'card', operation: 'read' });
    });

    it('reads the usage report', async () => {
      const { key: readerKey } = await reported();
      const { tenants } = await client(readerKey);
      expect(await tenants.retrieveUsageReport()).toEqual({
        tokenReport: {
          metricsByType: { token: { count: 5, lastCreatedAt: expect.any(String) }, card: { count: 0 } },
          includedMonthlyActiveTokens: 0,
          monthlyActiveTokens: 10,
        },
      });
    });

    it('manages Applications and keys through every call it has', async () => {
      const { applications, applicationKeys } = await client((await owner()).key);
      const made = await applications.create({ name: 'Shop', type: 'private', permissions: ['token:use'] });
      expect(made).toMatchObject({
        name: 'Shop',
        tenantId,
        permissions: ['token:use'],
        createdBy: expect.any(String),
      });
      expect(made.key).toMatch(/^key_/);
      const { key: first, ...withoutKey } = made;
      expect(await applications.retrieve(made.id)).toEqual(withoutKey);
      const own = await client(first ?? '');
      expect(await own.applications.retrieveByKey()).toMatchObject({ id: made.id });
      const updated = await applications.update(made.id, { name: 'Renamed', permissions: ['token:read'] });
      expect(updated).toMatchObject({ name: 'Renamed', permissions: ['token:read'] });

      const second = await applicationKeys.create(made.id);
      expect(second.key).toMatch(/^key_/);
      expect(await applicationKeys.get(made.id)).toHaveLength(2);
      expect(await applicationKeys.getById(made.id, second.id ?? '')).toMatchObject({ id: second.id });
      await applicationKeys.delete(made.id, second.id ?? '');
      expect(await applicationKeys.get(made.id)).toHaveLength(1);

      const regenerated = await applications.regenerateKey(made.id, { idempotencyKey: 'again' });
      expect(regenerated.key).toMatch(/^key_/);
      const repeated = await applications.regenerateKey(made.id, { idempotencyKey: 'again' });
      expect(repeated).toMatchObject({ id: made.id, name: 'Renamed' });
      expect(repeated.key).toBeUndefined();
      expect(await rejection(own.permissions.list())).toMatchObject({ status: 401 });

      const { data, pagination } = await applications.list({ id: [made.id], page: 1, size: 5 });
      expect(data.map((application) => application.id)).toEqual([made.id]);
      expect(pagination).toEqual({ totalItems: 1, pageNumber: 1, pageSize: 5, totalPages: 1 });
      expect((await applications.list()).pagination.totalItems).toBe(3);
      await applications.delete(made.id);
      expect(await rejection(applications.retrieve(made.id))).toMatchObject({ status: 404 });
    });

    it('reports typed errors', async () => {
      const { tenants } = await client(key);
      expect(await rejection(tenants.update({ name: '' }))).toMatchObject({
        name: 'BasisTheoryApiError',
        status: 400,
        data: { errors: { name: ['must not be blank'] } },
      });
      const limited = await by.newApplication(tenantId, 'private', 'token:read');
      expect(await rejection((await client(limited.key)).tenants.retrieve())).toMatchObject({
        name: 'BasisTheoryApiError',
        status: 403,
        data: { requiredPermission: 'tenant:read', applicationType: 'private', assignable: false },
      });
      expect(await rejection((await client('nonsense')).permissions.list())).toMatchObject({
        name: 'BasisTheoryApiError',
        status: 401,
        data: { code: 'key_refused' },
      });
    });
  });
});
