import { once } from 'node:events';
import { startStandIn } from '../support/event-store/stand-in';
import { fileOf } from '../support/fact-file';
import { manyFacts } from '../support/facts';
import { freshFolder } from '../support/folders';
import { ask, rename } from '../support/http';
import { describeMongodb } from '../support/mongodb/databases';
import { operatorAt } from '../support/operator';
import { clustered } from '../support/profile';
import { seed, seeded } from '../support/property';
import { serviceProcess, spawnProgram } from '../support/service';

type Times = Record<'reads' | 'writes', Record<'quiet' | 'loud', number[]>>;

const FACTS = 1_500;
/** Two commits of whoever follows the log. */
const MAX_WAIT_MS = 100;

const medianOf = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;

describeMongodb('a tenant beside one that ingests, in a cluster', () => {
  it(
    seeded('waits for no more than two commits when it writes, and hardly longer when it reads'),
    async () => {
      const store = await startStandIn();
      const folder = freshFolder();
      const env = { DATA_DIR: folder, ...clustered(store.url) };
      const service = await serviceProcess(env);
      const self = `${service.url}/tenants/self`;
      const { tenant_id: busy = '' } = await operatorAt(folder, env).json('tenant create --name Busy');
      const times: Times = { reads: { quiet: [], loud: [] }, writes: { quiet: [], loud: [] } };
      const read = async (into: number[]): Promise<string> => {
        const startedAt = performance.now();
        const { json } = await ask(self, service);
        into.push(performance.now() - startedAt);
        return String(json.name);
      };
      const write = async (name: string, into: number[]): Promise<void> => {
        const startedAt = performance.now();
        const written = await rename(service, service.key, name);
        into.push(performance.now() - startedAt);
        expect([written.status, written.headers.get('svc-read-pending')]).toEqual([200, null]);
      };
      for (let n = 0; n < 50; n += 1) {
        await write(`Quiet ${n}`, times.writes.quiet);
        await read(times.reads.quiet);
      }

      const ingest = spawnProgram(['ingest', fileOf(manyFacts([busy], FACTS, seed))], env);
      let code: unknown;
      const ended = once(ingest, 'close').then(() => (code = ingest.exitCode));
      for (let n = 0; code === undefined; n += 1) {
        const name = `Name ${n}`;
        await write(name, times.writes.loud);
        for (let again = 0; again < 3; again += 1) expect(await read(times.reads.loud)).toBe(name);
      }
      await ended;
      expect(code).toBe(0);
      const medians = {
        reads: { quiet: medianOf(times.reads.quiet), loud: medianOf(times.reads.loud) },
        writes: { quiet: medianOf(times.writes.quiet), loud: medianOf(times.writes.loud) },
      };
      console.log(`${times.writes.loud.length} writes; ${JSON.stringify(medians)} ms`);
      expect(times.writes.loud.length).toBeGreaterThan(5);
      expect(medians.reads.loud).toBeLessThan(medians.reads.quiet + 20);
      expect(medians.writes.loud).toBeLessThan(medians.writes.quiet + MAX_WAIT_MS);
      expect(await service.stop()).toBe(0);
      await store.stop();
    },
    120_000,
  );
});
