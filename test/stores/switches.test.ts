import { projections } from '../../projections/projections';
import type { Projector } from '../../projections/projector';
import type { App } from '../../src/app/app';
import { prune, unusedGenerations } from '../../src/projecting/prune';
import { rebuild } from '../support/rebuild';
import { STILL_PROJECTED_MS } from '../../src/projecting/active-generations';
import { beside } from '../support/beside';
import { crowdAt, type Crowd } from '../support/crowd';
import { openAppIn } from '../support/profile';
import { writeAndRead, nothingSeen } from '../support/read-your-writes';
import { serviceProcess, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

/** A campaign sets more. */
const SWITCHES = Number(process.env['SWITCHES'] ?? '18');
const CLIENTS = 2;
const READS_BETWEEN = 6;
/** In the short form, clients leave the processor to the rebuilds. */
const REST_MS = SWITCHES > 100 ? 0 : 20;

/** Rebuilds follow the pruning, enough of them that the removed generations are closed everywhere. */
const PRUNED_AFTER = 11;

/** Both are read after every write. */
const switched = ['tenants', 'logs'].map(
  (name) => projections.find((projection) => projection.name === name) as Projector,
);

describe('two servers on one data folder, while read models are switched', () => {
  let services: readonly ServiceProcess[];
  let crowds: readonly Crowd[];
  let app: App;
  beforeAll(async () => {
    const first = await serviceProcess();
    services = [first, await serviceProcess({ DATA_DIR: first.folder })];
    crowds = services.map(({ url }) => crowdAt(url));
    app = await openAppIn(first.folder);
  });
  afterAll(async () => {
    for (const crowd of crowds) crowd.close();
    await app.close();
    for (const service of services) expect(await service.stop()).toBe(0);
  });

  const rebuilt = (projector: Projector) => rebuild(app.replay, projector);

  it(
    'show every acknowledged write immediately, whichever server is asked',
    async () => {
      const by = await beside(services[0] as ServiceProcess);
      const keys: string[] = [];
      for (let i = 0; i < CLIENTS; i += 1) {
        const { tenantId } = await by.newTenant();
        const { key } = await by.newApplication(
          tenantId,
          'management',
          'tenant:read',
          'tenant:update',
          'log:read',
        );
        keys.push(key);
      }
      for (const projector of switched) await rebuilt(projector);
      const seen = nothingSeen();
      let done = false;
      const clients = keys.map((key) => writeAndRead(crowds, key, seen, () => done, REST_MS));
      const { readModels } = app.replay;
      const switching = async (): Promise<void> => {
        for (let i = 0; i < SWITCHES; i += 1) {
          const projector = switched[i % switched.length] as Projector;
          await rebuilt(projector);
          if (i === PRUNED_AFTER)
            expect(
              await prune(readModels, projections, await unusedGenerations(readModels, projections)),
            ).not.toEqual([]);
          const enough = seen.reads + READS_BETWEEN;
          await until(() => seen.reads >= enough);
        }
      };
      await switching().finally(() => (done = true));
      await Promise.all(clients);
      expect(seen.reads).toBeGreaterThan(SWITCHES * READS_BETWEEN);
      expect({ stale: seen.stale, failed: seen.failed }).toEqual({ stale: [], failed: [] });
    },
    Math.max(60_000, SWITCHES * 1_000),
  );

  it('show every acknowledged write on a server that was suspended in the meantime', async () => {
    const by = await beside(services[0] as ServiceProcess);
    const { tenantId } = await by.newTenant();
    const { key } = await by.newApplication(tenantId, 'management', 'tenant:read', 'tenant:update');
    const [tenants] = switched as [Projector];
    for (const asleep of SWITCHES > 100 ? [0, 1] : [1]) {
      const [sleeper, awake] = [services[asleep] as ServiceProcess, crowds[1 - asleep] as Crowd];
      sleeper.process.kill('SIGSTOP');
      const startedAt = Date.now();
      // By then the generation it reads is no longer live, and nobody projects it any more.
      for (let i = 0; i < 2; i += 1) await rebuilt(tenants);
      await until(() => Date.now() - startedAt > STILL_PROJECTED_MS + 500);
      const { readModels } = app.replay;
      await prune(readModels, projections, await unusedGenerations(readModels, projections));
      const name = `While ${asleep} slept`;
      const put = () => awake.ask('/tenants/self', { method: 'PUT', key, body: { name } });
      await until(async () => !(await put()).headers.has('svc-read-pending'));
      const asked = (crowds[asleep] as Crowd).ask('/tenants/self', { key });
      sleeper.process.kill('SIGCONT');
      const answer = await asked;
      expect([answer.status, answer.json.name]).toEqual([200, name]);
    }
  });
});
