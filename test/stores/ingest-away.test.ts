import { startStandIn, type StandIn } from '../support/event-store/stand-in';
import { manyFacts, textOf } from '../support/facts';
import { freshFolder } from '../support/folders';
import { describeMongodb } from '../support/mongodb/databases';
import { operatorAt } from '../support/operator';
import { clustered } from '../support/profile';
import { seed, seeded } from '../support/property';
import { startCommand } from '../support/service';
import { until } from '../support/waiting';

describeMongodb('ingest while the event store is away', () => {
  let store: StandIn;
  let env: Record<string, string>;
  let tenantId = '';
  beforeEach(async () => {
    store = await startStandIn();
    env = { ...clustered(store.url, undefined, ''), DATA_DIR: freshFolder() };
    const { tenant_id = '' } = await operatorAt(env['DATA_DIR']!, env).json('tenant create --name Away');
    tenantId = tenant_id;
  });
  afterEach(() => store.stop());

  /** Sends the second half of the facts once the first is stored and the store was killed. */
  const interrupted = async (wait: string, comeBack: (stderr: () => string) => Promise<void>) => {
    const facts = manyFacts([tenantId], 200, seed);
    const { stdin, done, stdout, stderr } = startCommand(['ingest', '--json', '--wait', wait], env);
    for (const end of [50, 100]) {
      stdin.write(textOf(facts.slice(end - 50, end)));
      await until(() => store.log.ofStream(`activity-${tenantId}`).length === end);
    }
    await store.kill();
    stdin.end(textOf(facts.slice(100)));
    await comeBack(stderr);
    return { facts, code: await done, stdout: stdout(), stderr: stderr() };
  };

  it(seeded('waits until it is back'), async () => {
    const { facts, code, stdout } = await interrupted('60', async (printed) => {
      await until(() => printed().includes('Waiting up to 60 s for it.'));
      await store.restart();
    });
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, accepted: 200, refused: 0 });
    const stored = store.log.ofStream(`activity-${tenantId}`);
    expect(stored.map(({ id }) => id).toSorted()).toEqual(facts.map(({ id }) => id).toSorted());
  });

  it(seeded('prints the totals if it does not come back'), async () => {
    const { code, stdout, stderr } = await interrupted('3', async () => undefined);
    const { accepted } = JSON.parse(stdout) as { readonly accepted: number };
    expect(code).toBe(1);
    expect(accepted).toBeGreaterThan(0);
    expect(accepted).toBeLessThanOrEqual(100);
    expect(stderr.trim().split('\n').at(-1)).toMatch(/"log_unavailable","message":"The event store /);
  });
});
