import { hostname } from 'node:os';
import { ask } from '../support/http';
import { operatorAt } from '../support/operator';
import { startService, type Service } from '../support/service';

describe('one running server', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(async () => {
    expect(await service.stop()).toBe(0);
  });

  describe('under 100 writers who read the same Tenant', () => {
    it('accepts exactly one write for each revision', async () => {
      const url = `${service.url}/tenants/self`;
      for (let round = 0; round < 5; round += 1) {
        const seen = (await ask(url, { key: service.key })).headers.get('etag') ?? '';
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, writer) =>
            ask(url, {
              method: 'PUT',
              key: service.key,
              headers: { 'If-Match': seen },
              body: { name: `Round ${round} writer ${writer}` },
            }),
          ),
        );
        const winners = answers.filter(({ status }) => status === 200);
        const losers = answers.filter(({ status }) => status === 412);
        expect({ won: winners.length, lost: losers.length }).toEqual({ won: 1, lost: 99 });
        const now = await ask(url, { key: service.key });
        expect(now.json.name).toBe(winners[0]?.json.name);
        const current = now.headers.get('etag');
        expect(current).not.toBe(seen);
        expect(new Set(answers.map(({ headers }) => headers.get('etag')))).toEqual(new Set([current]));
      }
    });
  });

  describe('after a key is revoked on the command line', () => {
    it('accepts no write with it from then on, and no read a second later', async () => {
      const url = `${service.url}/tenants/self`;
      const operator = operatorAt(service.folder);
      const [{ tenant_id: tenant } = { tenant_id: '' }] =
        await operator.json<{ tenant_id: string }[]>('tenant list');
      const [{ application_id: app } = { application_id: '' }] = await operator.json<
        { application_id: string }[]
      >(`application list --tenant ${tenant}`);
      const { key = '', key_id: id } = await operator.json(
        `key create --tenant ${tenant} --application ${app}`,
      );
      expect((await ask(url, { key })).status).toBe(200);
      expect((await ask(url, { method: 'PUT', key, body: { name: 'Before' } })).status).toBe(200);
      const etag = (await ask(url, { key })).headers.get('etag');

      await operator.json(`key revoke --tenant ${tenant} ${id}`);
      const revoked = performance.now();
      const written = await ask(url, { method: 'PUT', key, body: { name: 'After' } });
      expect(written).toMatchObject({ status: 401, json: { code: 'key_refused' } });
      expect(performance.now() - revoked).toBeLessThan(1_000);
      const read = await ask(url, { key });
      expect(read).toMatchObject({ status: 401, json: { code: 'key_refused' } });
      const others = await ask(url, { key: service.key });
      expect(others).toMatchObject({ status: 200, json: { name: 'Before' } });
      expect(others.headers.get('etag')).toBe(etag);
    });

    it('is still the process that projects', async () => {
      const status = await operatorAt(service.folder).json('status');
      expect(status['projector']).toMatch(new RegExp(`^${hostname()} \\S+ ${process.pid}$`));
    });
  });
});
