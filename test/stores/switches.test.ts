import type { App } from '../../src/app/app';
import { rebuild } from '../../src/projecting/rebuild';
import { beside } from '../support/beside';
import { isCampaign, saysHowFar } from '../support/campaign';
import { crowdAt, type Crowd } from '../support/crowd';
import { openAppIn } from '../support/profile';
import { writeAndRead, nothingSeen } from '../support/read-your-writes';
import { serviceProcess, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

const SWITCHES = Number(process.env['SWITCHES'] ?? '18');
const CLIENTS = 2;
const READS_BETWEEN = 6;
/** In the short form, clients leave the processor to the rebuilds. */
const REST_MS = isCampaign ? 0 : 20;

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

  const rebuilt = () =>
    rebuild(app, { acceptDifferences: false, onStep: () => undefined, onDifference: () => undefined });

  it('show every acknowledged write immediately, whichever server is asked', async () => {
    const by = await beside(services[0] as ServiceProcess);
    const keys: string[] = [];
    for (let i = 0; i < CLIENTS; i += 1) {
      const { key } = await by.newTenant('Acme', ['tenant:read', 'tenant:update', 'log:read']);
      keys.push(key);
    }
    const seen = nothingSeen();
    let done = false;
    const clients = keys.map((key) => writeAndRead(crowds, key, seen, () => done, REST_MS));
    const switching = async (): Promise<void> => {
      const saysDone = saysHowFar('switches', SWITCHES);
      for (let i = 0; i < SWITCHES; i += 1) {
        await rebuilt();
        const enough = seen.reads + READS_BETWEEN;
        await until(() => seen.reads >= enough, Infinity);
        saysDone(i + 1);
      }
    };
    await switching().finally(() => (done = true));
    await Promise.all(clients);
    expect(seen.reads).toBeGreaterThan(SWITCHES * READS_BETWEEN);
    expect({ stale: seen.stale, failed: seen.failed }).toEqual({ stale: [], failed: [] });
  });
});
