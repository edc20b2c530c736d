import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { eventsIn, operatorAt } from '../support/operator';
import { isClustered } from '../support/profile';
import { startService } from '../support/service';

interface Demo {
  readonly tenant_id: string;
  readonly name: string;
  readonly facts: number;
  readonly key: string;
  readonly portal: string | null;
}

describe('tenant-ledger demo', () => {
  it('creates another tenant with what the first start creates, beside a running server', async () => {
    const service = await startService();
    const demo = await operatorAt(service.folder).json<Demo>('demo');
    expect(demo.portal).toBe(`${isClustered ? 'http://127.0.0.1:8080' : service.url}/portal`);
    const shownTo = async (key: string) => {
      const get = async (path: string) => (await ask(`${service.url}${path}`, { key })).json;
      const { id, name } = await get('/tenants/self');
      const { total_items: rows } = (await get('/logs')).pagination;
      const { metrics_by_type: metrics } = (await get('/tenants/self/reports/usage')).token_report;
      const types = Object.entries<{ count: number }>(metrics).map(([type, { count }]) => [type, count]);
      return { id, name, rows, types: Object.fromEntries(types) };
    };
    const [first, second] = [await shownTo(service.key), await shownTo(demo.key)];
    expect(second).toEqual({ ...first, id: demo.tenant_id });
    expect(first.id).not.toBe(demo.tenant_id);
    expect(first).toMatchObject({ name: demo.name, types: { token: 25, card: 10, bank: 3 } });
    expect(first.rows).toBeGreaterThan(demo.facts);
    expect(await service.stop()).toBe(0);
    const { portal } = await operatorAt(service.folder).json<Demo>('demo');
    expect(portal).toBe('http://127.0.0.1:8080/portal');
  });

  it('works on an empty folder, prints readable output, and names the portal if there is one', async () => {
    const operator = operatorAt(freshFolder(), { PUBLIC_URL: 'https://ledger.example.com' });
    const { code, stdout, stderr } = await operator.run('demo');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^tenant_id: +[0-9a-f-]{36}\nname: +Demo tenant\nfacts: +\d+\nkey: +key_\w{55}\nportal: +https:\/\/ledger\.example\.com\/portal\n$/,
    );
    const without = await operatorAt(operator.folder, { PORTAL: 'false' }).json<Demo>('demo');
    expect(without.portal).toBeNull();
  });

  const demoEvents = async () => {
    const operator = operatorAt(freshFolder());
    await operator.json('demo');
    return eventsIn(operator.folder);
  };

  it('tells of no entity before it was created or after it was deleted, of every type over 30 days', async () => {
    const facts = (await demoEvents()).filter(({ stream }) => stream.includes('activity-'));
    const state = new Map<string, 'alive' | 'deleted'>();
    const days = new Set<string>();
    for (const { type, data, recordedAt } of facts) {
      const { entityId } = data as { entityId: string };
      const expected = type.endsWith('Created') ? undefined : 'alive';
      expect([entityId, state.get(entityId)]).toEqual([entityId, expected]);
      state.set(entityId, type.endsWith('Deleted') ? 'deleted' : 'alive');
      days.add(recordedAt.slice(0, 10));
    }
    expect([facts.length > 0, days.size >= 30]).toEqual([true, true]);
  });

  it('has a month in the log: everything is recorded when it happened, in order, and nothing in the future', async () => {
    const events = await demoEvents();
    const times = events.map(({ recordedAt }) => recordedAt);
    expect(times).toEqual(times.toSorted());
    expect(events.map(({ metadata }) => (metadata as { at: string }).at)).toEqual(times);
    const age = (time = '') => (Date.now() - Date.parse(time)) / 86_400_000;
    expect([Math.floor(age(times[0])), Math.floor(age(times.at(-1)))]).toEqual([30, 0]);
    expect(age(times.at(-1))).toBeGreaterThan(0);
  });

  it('has changed a setting since last week, and says so', async () => {
    const service = await startService();
    const get = async (path: string) => (await ask(`${service.url}${path}`, { key: service.key })).json;
    const lastWeek = new Date(Date.now() - 7 * 86_400_000).toISOString();
    const [then, now] = [await get(`/tenants/self?as_of=${lastWeek}`), await get('/tenants/self')];
    expect([then.settings.fingerprint_tokens, now.settings.fingerprint_tokens]).toEqual(['false', 'true']);
    const { data } = await get('/logs?entity_type=tenant&operation=update');
    const { changes, actor, key_id } = await get(`/events/${data[0].id}`);
    expect(changes).toEqual([{ field: 'settings.fingerprint_tokens', from: false, to: true }]);
    const { id, key_id: own } = await get('/applications/key');
    expect([actor, key_id]).toEqual([{ type: 'application', id, name: 'Management' }, own]);
  });
});
