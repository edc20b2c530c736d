import { once } from 'node:events';
import { startStandIn } from '../support/event-store/stand-in';
import { fileOf } from '../support/fact-file';
import { manyFacts } from '../support/facts';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { connectMongodb } from '../support/mongodb-under-test';
import { describeMongodb } from '../support/mongodb/databases';
import { operatorAt } from '../support/operator';
import { clustered } from '../support/profile';
import { seed, seeded } from '../support/property';
import { serviceProcess, spawnProgram } from '../support/service';

const FACTS = 1_500;
/** `ingest` appends so many at a time, and goes on when the batch before last is shown. */
const BATCH = 100;
/** A third batch may be appended between the look at the set and the write; besides there is what keys did. */
const MAX_AHEAD = 3 * BATCH + 5;

const medianOf = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;

describeMongodb('a tenant beside one that ingests, in a cluster', () => {
  it(
    seeded('waits for no more than two batches when it writes, and hardly longer when it reads'),
    async () => {
      const store = await startStandIn();
      const folder = freshFolder();
      const env = { DATA_DIR: folder, ...clustered(store.url) };
      const service = await serviceProcess(env);
      const self = `${service.url}/tenants/self`;
      const { tenant_id: busy = '' } = await operatorAt(folder, env).json('tenant create --name Busy');
      const sets = (await connectMongodb(env.MONGODB_URL)).db.collection('read_model_sets');
      const shownUpTo = async (): Promise<number> => {
        const id = (await sets.findOne({}))?.['to']?.event_id as string;
        return store.log.records.findLastIndex((record) => record.id === id);
      };
      const reads: { quiet: number[]; loud: number[] } = { quiet: [], loud: [] };
      const read = async (into: number[]): Promise<string> => {
        const startedAt = performance.now();
        const { json } = await ask(self, service);
        into.push(performance.now() - startedAt);
        return String(json.name);
      };
      for (let n = 0; n < 50; n += 1) await read(reads.quiet);

      const ingest = spawnProgram(['ingest', fileOf(manyFacts([busy], FACTS, seed))], env);
      let code: unknown;
      const ended = once(ingest, 'close').then(() => (code = ingest.exitCode));
      const ahead: number[] = [];
      for (let n = 0; code === undefined; n += 1) {
        const [name, before] = [`Name ${n}`, await shownUpTo()];
        const written = await ask(self, { key: service.key, method: 'PUT', body: { name } });
        expect([written.status, written.headers.get('svc-read-pending')]).toEqual([200, null]);
        const own = store.log.records.findLastIndex(({ type }) => type === 'TenantUpdated');
        ahead.push(own - before);
        for (let again = 0; again < 3; again += 1) expect(await read(reads.loud)).toBe(name);
      }
      await ended;
      expect(code).toBe(0);
      const medians = { quiet: medianOf(reads.quiet), loud: medianOf(reads.loud) };
      console.log(`events that a write waited for: ${ahead.join(' ')}; reads: ${JSON.stringify(medians)} ms`);
      expect(ahead.length).toBeGreaterThan(5);
      expect(Math.max(...ahead)).toBeLessThanOrEqual(MAX_AHEAD);
      expect(medians.loud).toBeLessThan(medians.quiet + 20);
      expect(await service.stop()).toBe(0);
      await store.stop();
    },
    120_000,
  );
});
