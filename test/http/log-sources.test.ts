import { TIMES } from '../../src/times';
import { ALL_PERMISSIONS, besideForTests, type NewApplication, type NewTenant } from '../support/beside';
import { ask } from '../support/http';
import { fact, reportFacts } from '../support/reported-facts';
import { serviceForTests } from '../support/service';
import { until } from '../support/waiting';

/** Who says so, and who it was, wherever rows are shown. */
describe('a row of the log', () => {
  const service = serviceForTests({ DEMO: 'false' }, { ...TIMES, keyUsesMs: 10 });
  const by = besideForTests(service);
  let owner: NewTenant;
  let gone: NewApplication;
  const asOwner = (path: string, more = {}) => ask(`${service.url}${path}`, { key: owner.key, ...more });
  const rows = async (query: string) => (await asOwner(`/logs?${query}`)).json.data;

  beforeAll(async () => {
    owner = await by.newTenant('Acme', ALL_PERMISSIONS);
    gone = await by.newApplication(owner.tenantId, 'private', 'token:create');
    expect((await asOwner(`/applications/${gone.id}`, { method: 'DELETE' })).status).toBe(204);
    const claimed = { entityType: 'application', operation: 'delete', message: 'Application deleted' };
    await reportFacts(service.folder, owner.tenantId, [
      fact('ActivityReported', gone.id, { data: { ...claimed, occurredAt: '2026-01-31T12:00:00+01:00' } }),
    ]);
    await until(async () => (await rows(`entity_id=${gone.id}`)).length === 3);
    await until(async () => (await rows('source=access')).length > 0);
  });

  it('that claims a deletion is told from that of the deletion', async () => {
    const [claim, deletion] = await rows(`entity_id=${gone.id}&size=2`);
    const same = ({ entity_type, entity_id, operation, message }: Record<string, string>) =>
      [entity_type, entity_id, operation, message].join();
    expect(same(claim)).toBe(same(deletion));
    expect(claim).toMatchObject({ source: 'fact', occurred_at: '2026-01-31T11:00:00.000Z' });
    expect(deletion).toMatchObject({ source: 'decision', actor_id: owner.id });
    expect([claim.actor_name, deletion.occurred_at]).toEqual([undefined, undefined]);
    expect(await rows(`entity_id=${gone.id}&source=decision`)).not.toContainEqual(claim);
    const { text } = await asOwner('/events?source=fact&limit=1');
    expect(JSON.parse(text.split('\n')[0]!).log).toEqual(claim);
    const csv = (await asOwner('/logs/csv?source=fact')).text;
    expect(csv).toContain(',Application deleted,');
    expect(csv.split('\r\n')[1]).toMatch(/,fact,,2026-01-31T11:00:00.000Z$/);
  });

  it('has the name that the Application had, whatever it is called since', async () => {
    const before = (await asOwner('/applications/key')).json;
    const rename = (name: string) =>
      asOwner(`/applications/${owner.id}`, { method: 'PUT', body: { ...before, name } });
    expect((await rename('Second')).status).toBe(200);
    expect((await rename('Third')).status).toBe(200);
    const updates = `entity_id=${owner.id}&operation=update`;
    const named = (await rows(`${updates}&size=2`)).map((row: Record<string, string>) => row['actor_name']);
    expect(named).toEqual(['Second', before.name]);
    const { text } = await asOwner(`/events?${updates}`);
    const events = text.split('\n').slice(0, -2);
    const inEvents = events
      .map((line) => JSON.parse(line))
      .map(({ actor, log }) => [actor.name, log.actor_name]);
    expect(inEvents).toEqual([before.name, 'Second'].map((name) => [name, name]));
    expect((await asOwner(`/logs/csv?${updates}`)).text).toContain(',decision,Second,');
  });

  it('about the use of a key has the name of its Application, and what the operator did has none', async () => {
    const [use] = (await rows('source=access&size=100')).toReversed();
    expect(use).toMatchObject({ entity_id: owner.keyId, actor_id: owner.id, actor_name: 'A management one' });
    const [created] = await rows('entity_type=tenant&operation=create');
    expect([created.source, created.actor_type, created.actor_name]).toEqual(['decision', 'user', undefined]);
  });
});
