import { readdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { pause } from '../../src/async/clock';
import type { Finding } from '../../src/app/doctor';
import { appendToEnd } from '../../src/event-log/event-log';
import { anEvent } from '../support/events';
import { insideDamages, partialDamages, wholeDamages } from '../support/damage';
import { fileOf } from '../support/fact-file';
import { manyFacts } from '../support/facts';
import { ask, rename } from '../support/http';
import { operatorAt } from '../support/operator';
import { expectProblem } from '../support/problem';
import { EMBEDDED, openLogIn } from '../support/profile';
import { allProjected, commandProcess, serviceProcess, type ServiceProcess } from '../support/service';
import { liveSetFile } from '../support/set-files';
import { until } from '../support/waiting';

const COMMAND = 'tenant-ledger projections rebuild';

/** Until then, a start that finds damage builds the read models again. */
const FOLLOWED_MS = 1_500;

const filesOf = (set: string): readonly string[] =>
  readdirSync(dirname(set)).filter((name) => name.startsWith(basename(set)));

describe('damaged read models', () => {
  let service: ServiceProcess;
  beforeAll(async () => {
    service = await serviceProcess(EMBEDDED);
    for (const name of ['A', 'B', 'C']) expect((await renamed(name)).status).toBe(200);
  });
  afterAll(async () => {
    await service.stop();
  });

  const get = (path: string) => ask(`${service.url}${path}`, { key: service.key });
  const renamed = (name: string) => rename(service, service.key, name);
  const health = () => ask(`${service.operationsUrl}/readyz`);
  const shown = async () => {
    const paths = ['/tenants/self', '/logs?size=100&entity_type=tenant', '/tenants/self/reports/usage'];
    return Promise.all(paths.map(async (path) => (await get(path)).json as unknown));
  };
  const startAgain = async (): Promise<void> => {
    const { folder, key } = service;
    service = { ...(await serviceProcess({ ...EMBEDDED, DATA_DIR: folder })), key };
  };
  const operator = () => operatorAt(service.folder, EMBEDDED, commandProcess);
  const problems = async () => {
    const { stdout } = await operator().run('doctor --json');
    return (JSON.parse(stdout) as Finding[]).filter(({ status }) => status === 'problem');
  };
  /** Stops the service, so that everything is in the file and nothing in its `-wal`. */
  const stopped = async (): Promise<string> => {
    await allProjected(service);
    await service.stop();
    return liveSetFile(service.folder);
  };

  it.each(Object.keys(wholeDamages))('are built again by the next start: %s', async (how) => {
    const before = await shown();
    wholeDamages[how]?.(await stopped());
    await startAgain();
    expect(await shown()).toEqual(before);
    expect((await health()).status).toBe(200);
    expect(await problems()).toEqual([]);
  });

  it.each(Object.keys(partialDamages))(
    'are not read, which the answer says, and are rebuilt beside the running service: %s',
    async (how) => {
      const before = await shown();
      await stopped();
      await startAgain();
      await pause(FOLLOWED_MS);
      const damaged = liveSetFile(service.folder);
      partialDamages[how]?.(damaged);
      const read = await get('/tenants/self');
      expectProblem(read, 503, 'read_models_unavailable');
      expect(read.text).not.toMatch(/\.db|SQL|malformed|no such/i);
      const logged = () => service.stderr().includes(damaged);
      await until(logged, 5_000, 'the reason in the log');
      expect(await operator().json<unknown>('projections rebuild')).toMatchObject({ differences: null });
      expect(await shown()).toEqual(before);
    },
  );

  it('accept writes if their file is deleted beside the running service, which is not ready until they are rebuilt', async () => {
    wholeDamages['deleted']?.(liveSetFile(service.folder));
    const written = await renamed('Kept');
    expect([written.status, written.headers.get('svc-read-pending')]).toEqual([200, 'true']);
    expectProblem(await get('/tenants/self'), 503, 'read_models_unavailable');
    const { status, json } = await health();
    expect([status, json.reason]).toEqual([503, expect.stringContaining(COMMAND)]);
    expect(await problems()).toMatchObject([
      { check: 'read models', fix: expect.stringContaining('projections rebuild') },
    ]);
    await operator().json('projections rebuild');
    expect((await get('/tenants/self')).json.name).toBe('Kept');
    expect((await health()).status).toBe(200);
    const again = await renamed('Again');
    expect([again.status, again.headers.get('svc-read-pending')]).toEqual([200, null]);
  });

  describe('of which most is overwritten', () => {
    const facts = async (count: number): Promise<string> => {
      const { id } = (await get('/tenants/self')).json as { id: string };
      return fileOf(manyFacts([id], count, 1));
    };
    const pages = [
      '/logs?size=100&entity_type=token',
      '/logs?entity_type=card&page=3',
      '/tenants/self/reports/usage',
    ];
    const shownPages = () => Promise.all(pages.map(async (path) => (await get(path)).json as unknown));
    /** With the whole set in its file, which nobody has read since. */
    const damagedWhileItRuns = async (how: string): Promise<string> => {
      await stopped();
      await startAgain();
      await pause(FOLLOWED_MS);
      const damaged = liveSetFile(service.folder);
      insideDamages[how]?.(damaged);
      return damaged;
    };
    beforeAll(async () => {
      await operator().json(`ingest ${await facts(5_000)}`);
      await allProjected(service);
    });

    it.each(Object.keys(insideDamages))(
      'are not ready any more, and the next start builds them again: %s',
      async (how) => {
        const before = await shownPages();
        const left = await damagedWhileItRuns(how);
        const all = async () => Promise.all(pages.map(get));
        await until(async () => (await all()).every(({ status }) => status === 503));
        const { status, json } = await health();
        expect([status, json.reason]).toEqual([503, expect.stringMatching('Restart the service')]);
        const written = await renamed('Kept');
        expect([written.status, written.headers.get('svc-read-pending')]).toEqual([200, 'true']);
        await service.stop();
        await startAgain();
        expect((await health()).status).toBe(200);
        expect((await get('/tenants/self')).json.name).toBe('Kept');
        expect(await shownPages()).toEqual(before);
        expect(filesOf(left)).toEqual([]);
        expect(await problems()).toEqual([]);
      },
    );

    it.each(Object.keys(insideDamages))('are rebuilt beside the running service: %s', async (how) => {
      const before = await shownPages();
      await damagedWhileItRuns(how);
      expect(await operator().json<unknown>('projections rebuild')).toMatchObject({ differences: null });
      expect(await shownPages()).toEqual(before);
      expect((await health()).status).toBe(200);
      expect((await renamed('Again')).headers.get('svc-read-pending')).toBeNull();
    });

    it('are built again by a start that finds out only when it follows the log', async () => {
      const { id } = (await get('/tenants/self')).json as { id: string };
      insideDamages['all but its schema']?.(await stopped());
      const { log, streams } = await openLogIn(service.folder);
      const fact = anEvent({ entityId: 'late' }, { type: 'CardCreated' });
      await appendToEnd(log, streams.activity(id), [fact]);
      await log.close();
      await startAgain();
      expect((await get('/logs?entity_id=late')).json.data).toMatchObject([{ id: fact.id }]);
      expect(await operator().json('projections verify')).toMatchObject({ differences: 0 });
    });
  });
});
