import { startWriters } from '../support/accounted-writers';
import { isCampaign, saysHowFar } from '../support/campaign';
import { startInstances, type Instances } from '../support/instances';
import { describeMongodb } from '../support/mongodb/databases';

const SWITCHES = Number(process.env['CLUSTERED_SWITCHES'] ?? '1');
const WRITERS = isCampaign ? 64 : 8;
/** In the short form, writers leave the processor to the rebuilds. */
const REST_MS = isCampaign ? 0 : 20;

describeMongodb('two instances under writers', () => {
  let instances: Instances;
  beforeAll(async () => {
    instances = await startInstances(2, { RATE_LIMITS: 'off' });
  }, 120_000);
  afterAll(() => instances.close());

  it(
    `are switched to rebuilt read models, one after the other (switches: ${SWITCHES})`,
    async () => {
      const writers = await startWriters(instances, WRITERS, REST_MS);
      const times: number[] = [];
      const saysDone = saysHowFar('switches', SWITCHES);
      for (let done = 0; done < SWITCHES; done += 1) {
        const began = performance.now();
        const { code, stderr } = await instances.run('projections', 'rebuild');
        expect([code, stderr]).toEqual([0, expect.anything()]);
        times.push(performance.now() - began);
        saysDone(done + 1);
      }
      const writes = await writers.stop();
      const verified = await instances.run('projections', 'verify');
      expect([verified.code, verified.stderr]).toEqual([0, expect.anything()]);
      console.table({
        'switches, each of which succeeded': SWITCHES,
        'all in s': times.map((ms) => (ms / 1_000).toFixed(1)).join(' '),
        'acknowledged writes, all of them there once': writes,
        'of these READ-PENDING': writers.acknowledged.filter(({ isPending }) => isPending).length,
      });
    },
    isCampaign ? undefined : 240_000,
  );
});
