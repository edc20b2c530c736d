import { regenerateKey, revokeKey } from '../../src/domain/application-keys';
import { deleteApplication } from '../../src/domain/applications';
import { deleteTenant, type Decide } from '../../src/domain/tenant';
import { newKey } from '../../src/ledger/api-key';
import { beside, type Beside } from '../support/beside';
import { ask, type AskOptions } from '../support/http';
import { expectProblem } from '../support/problem';
import { startService, type Service } from '../support/service';
import { whileStuck } from '../support/stuck';
import { until } from '../support/waiting';

type Customer = Awaited<ReturnType<Beside['newTenant']>>;

/** Everything that invalidates a key, wherever it is done. */
const endings: readonly [string, (customer: Customer) => Decide][] = [
  ['is revoked', ({ keyId }) => revokeKey(keyId)],
  ['is replaced', ({ tenantId, id }) => regenerateKey(id, newKey(tenantId).input, 0)],
  ['is replaced with a short grace', ({ tenantId, id }) => regenerateKey(id, newKey(tenantId).input, 0.1)],
  ['loses its Application', ({ id }) => deleteApplication(id)],
  ['loses its tenant', () => deleteTenant()],
];

describe('a key used for reads at two servers on one data folder, while the applications read model is stuck', () => {
  let [first, second]: Service[] = [];
  let by: Beside;
  const servers = (): readonly Service[] => [first!, second!];
  const get = async ({ url }: Service, key: string, more: AskOptions = {}) =>
    ask(`${url}/tenants/self`, { key, ...more });
  const allRead = async (key: string): Promise<void> => {
    for (const server of servers()) expect((await get(server, key)).status).toBe(200);
  };
  const bothRefuseWithinASecond = async (key: string, status = 401): Promise<void> => {
    const end = performance.now() + 1_000;
    for (const server of servers())
      await until(
        async () => (await get(server, key)).status === status,
        Math.max(0, end - performance.now()),
        'a refusal',
      );
  };

  beforeAll(async () => {
    first = await startService();
    second = await startService({ DATA_DIR: first.folder });
    by = await beside(first);
  });

  it('that is invalidated in any way is refused for reads by both a second later; all other keys still work', async () => {
    const neighbour = await by.newTenant();
    const customers: Customer[] = [];
    for (const _ of endings) customers.push(await by.newTenant());
    for (const { key } of customers) await allRead(key);
    await whileStuck(first!.folder, async () => {
      for (const [i, [, ending]] of endings.entries()) {
        const { tenantId, key } = customers[i]!;
        await by.write(tenantId, ending(customers[i]!));
        await bothRefuseWithinASecond(key);
        for (const server of servers()) {
          expectProblem(await get(server, key), 401, 'key_refused');
          const put = { key, method: 'PUT', body: { name: 'B' } };
          expectProblem(await get(server, key, put), 401, 'key_refused');
        }
        await allRead(neighbour.key);
      }
    });
  });

  it('manages Applications over HTTP at once, and marks reads as pending', async () => {
    const { tenantId } = await by.newTenant();
    const owner = await by.newOwner(tenantId);
    const to = (server: Service, path: string, more: AskOptions = {}) =>
      ask(`${server.url}/applications${path}`, { key: owner.key, ...more });
    let id = '';
    await whileStuck(first!.folder, async () => {
      const body = { name: 'New', type: 'private', permissions: ['token:use'] };
      const made = await to(first!, '', { method: 'POST', body });
      expect([made.status, made.headers.get('svc-read-pending')]).toEqual([201, 'true']);
      ({ id } = made.json);
      const { key } = made.json;
      for (const server of servers()) {
        expect((await ask(`${server.url}/permissions`, { key })).status).toBe(200);
        expectProblem(await to(server, '/key', { key }), 503, 'read_models_unavailable');
        expectProblem(await to(server, `/${id}`), 404, 'application_not_found');
        expect((await to(server, '')).json.pagination.total_items).toBe(2);
      }
      const [updated, revoked] = await Promise.all([
        to(second!, `/${id}`, { method: 'PUT', body: { name: 'Renamed' } }),
        to(second!, `/${id}/keys/${made.json.keys[0].id}`, { method: 'DELETE' }),
      ]);
      expect([updated.status, updated.json.name]).toEqual([200, 'Renamed']);
      expect([revoked.status, revoked.headers.get('svc-read-pending')]).toEqual([204, 'true']);
      expect((await ask(`${second!.url}/permissions`, { key })).status).toBe(401);
    });
    for (const server of servers())
      await until(async () => (await to(server, `/${id}`)).json.name === 'Renamed', 5_000, 'the Application');
  });
});
