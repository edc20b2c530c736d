import { BasisTheory as BasisTheoryJs } from '@basis-theory/basis-theory-js';
import { BasisTheory, BasisTheoryClient } from '@basis-theory/node-sdk';
import { beside, type Beside } from '../support/beside';
import { startService, type Service } from '../support/service';

/** The unmodified public client libraries of this API family drive the server. */
describe('client libraries', () => {
  let service: Service;
  let by: Beside;
  let tenantId: string;
  let key: string;
  let id: string;

  beforeAll(async () => {
    service = await startService({ HEADER_PREFIX: 'BT', HOST: 'localhost' });
    by = await beside(service);
  });
  beforeEach(async () => {
    ({ tenantId, key, id } = await by.newTenant('Acme'));
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
  });

  const rejection = (work: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(work).then(
      () => Promise.reject(new Error('It was not refused.')),
      (error: unknown) => error,
    );

  describe('@basis-theory/node-sdk', () => {
    const client = (apiKey: string) => new BasisTheoryClient({ baseUrl: service.url, apiKey, maxRetries: 0 });

    it('lists permissions', async () => {
      const all = await client(key).permissions.list();
      expect(all).toHaveLength(30);
      expect(all[0]).toEqual({
        type: 'token:create',
        description: 'Create tokens',
        applicationTypes: ['public', 'private'],
      });
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

    it('updates once with an idempotency key', async () => {
      const self = client(key).tenants.self;
      const before = await by.count();
      const first = await self.update({ name: 'Once' }, { idempotencyKey: 'k' });
      expect(await self.update({ name: 'Once' }, { idempotencyKey: 'k' })).toEqual(first);
      expect(await by.count()).toBe(before + 1);
    });

    it('sends and sees the trace id', async () => {
      const { rawResponse } = await client(key).tenants.self.get({ correlationId: 'mine' }).withRawResponse();
      expect(rawResponse.headers.get('bt-trace-id')).toBe('mine');
    });

    it('deletes the Tenant, and then the key is refused', async () => {
      await client(key).tenants.self.delete();
      expect(await rejection(client(key).tenants.self.get())).toBeInstanceOf(BasisTheory.UnauthorizedError);
    });

    it('sees typed errors', async () => {
      const invalid = await rejection(client(key).tenants.self.update({ name: '' }));
      expect(invalid).toBeInstanceOf(BasisTheory.BadRequestError);
      expect((invalid as BasisTheory.BadRequestError).body).toMatchObject({
        status: 400,
        title: 'One or more validation errors occurred.',
        errors: { name: ['must not be blank'] },
      });
      const weak = await by.newApplication(tenantId, 'public', 'token:create');
      const denied = await rejection(client(weak.key).tenants.self.get());
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
      expect(all[0]).toEqual({
        type: 'token:create',
        description: 'Create tokens',
        applicationTypes: ['public', 'private'],
      });
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

    it('updates once with an idempotency key', async () => {
      const { tenants } = await client(key);
      const before = await by.count();
      const options = { idempotencyKey: 'k', correlationId: 'mine' };
      const first = await tenants.update({ name: 'Once' }, options);
      expect(await tenants.update({ name: 'Once' }, options)).toEqual(first);
      expect(await by.count()).toBe(before + 1);
      expect((await by.events()).at(-1)!.metadata).toMatchObject({ traceId: 'mine' });
    });

    it('sees typed errors', async () => {
      const { tenants } = await client(key);
      expect(await rejection(tenants.update({ name: '' }))).toMatchObject({
        name: 'BasisTheoryApiError',
        status: 400,
        data: { errors: { name: ['must not be blank'] } },
      });
      const weak = await by.newApplication(tenantId, 'private', 'token:read');
      expect(await rejection((await client(weak.key)).tenants.retrieve())).toMatchObject({
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
