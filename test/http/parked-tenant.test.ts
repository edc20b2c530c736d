import { routes } from '../../src/http/api';
import { ALL_PERMISSIONS, beside } from '../support/beside';
import { ask, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { fact, reportFacts } from '../support/reported-facts';
import { serviceForTests } from '../support/service';
import { until } from '../support/waiting';

const COMPLETE_UNTIL = '2091-01-01T00:00:05.000Z';

describe('a tenant that is parked', () => {
  const service = serviceForTests();
  let ids: Readonly<Record<string, string>>;
  let key = '';
  const call = async (path: string, asking: AskOptions = {}) => {
    const response = await ask(`${service.url}${path}`, { key, ...asking });
    const { status, headers } = response;
    const told = { status, until: headers.get('svc-complete-until'), etag: headers.get('etag') };
    return { ...response, told };
  };

  beforeAll(async () => {
    const by = await beside(service);
    const { tenantId, ...owner } = await by.newTenant('Acme', ALL_PERMISSIONS);
    ({ key } = owner);
    const bad = { type: 'TokenExploded', data: { entityId: 'a' }, recordedAt: COMPLETE_UNTIL };
    const [event = ''] = await reportFacts(service.folder, tenantId, [bad, fact('TokenRead', 'b')]);
    const { id: shown = '' } =
      (await by.events()).findLast(({ stream }) => stream.includes(`tenant-${tenantId}`)) ?? {};
    ids = {
      '/applications/:application_id/keys': owner.id,
      '/applications/:id': owner.id,
      '/events/:id/proof': shown,
      '/events/:id': event,
      ':key_id': owner.keyId,
    };
    await until(async () => (await call('/tenants/self')).told.until !== null);
  });

  const addressOf = (path: string): string =>
    Object.entries(ids).reduce(
      (address, [part, id]) => address.replace(part, part.replace(/:\w+/, id)),
      path,
    );

  const ofTenants = routes.filter(({ method, service: right }) => method === 'get' && right === undefined);
  it.each(ofTenants.map((route) => [route.path, route] as const))(
    'is told until when %s is complete if that reads the read models, as documented',
    async (path, { reads }) => {
      const { told } = await call(addressOf(path));
      expect(told).toEqual({ status: 200, until: reads === true ? COMPLETE_UNTIL : null, etag: null });
    },
  );

  it('is told so by HEAD, by what is not found, and instead of 304', async () => {
    const told = { status: 200, until: COMPLETE_UNTIL, etag: null };
    expect((await call('/tenants/self', { method: 'HEAD' })).told).toEqual(told);
    for (const tag of ['"0"', '*'])
      expect((await call('/tenants/self', { headers: { 'If-None-Match': tag } })).told).toEqual(told);
    const nowhere = await call('/applications/aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee');
    expect(nowhere.told).toEqual({ ...told, status: 404 });
  });

  it('has its past whole, which comes from the log', async () => {
    const now = encodeURIComponent(new Date().toISOString());
    const past = `/tenants/self?as_of=${now}`;
    expect((await call(past)).told).toEqual({ status: 200, until: null, etag: '"0"' });
    const again = await call(past, { headers: { 'If-None-Match': '"0"' } });
    expect(again.told).toEqual({ status: 304, until: null, etag: '"0"' });
    expect((await call(`/applications?as_of=${now}`)).told.until).toBeNull();
  });

  it('is told nothing by a query that is refused', async () => {
    const { told, ...refused } = await call('/logs?size=none');
    expectProblem(refused, 400, 'validation_failed', 'size');
    expect(told.until).toBeNull();
  });

  it('is the only one that is told so', async () => {
    const { headers, status } = await ask(`${service.url}/logs`, { key: service.key });
    expect([status, headers.get('svc-complete-until')]).toEqual([200, null]);
  });

  it('is told of events by filters that no read model shows yet', async () => {
    const { text, told } = await call('/events?type=TokenRead&operation=read');
    expect(told.until).toBeNull();
    expect(text).toContain('"operation":"read"');
  });

  it('has its writes pending', async () => {
    const put = await call('/tenants/self', { method: 'PUT', body: { name: 'Still' } });
    expect([put.status, put.headers.get('svc-read-pending')]).toEqual([200, 'true']);
    expect((await call('/tenants/self')).json.name).toBe('Acme');
  });
});
