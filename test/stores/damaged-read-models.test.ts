import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import type { Finding } from '../../src/app/doctor';
import { fileDamages } from '../support/damage';
import { fileOf as fileOfFacts } from '../support/fact-file';
import { aFact } from '../support/facts';
import { ask } from '../support/http';
import { fillStream } from '../support/ledgers';
import { openLogIn } from '../support/profile';
import { found, scrape } from '../support/metrics';
import { operatorAt } from '../support/operator';
import { expectProblem } from '../support/problem';
import { allProjected, commandProcess, serviceProcess, type ServiceProcess } from '../support/service';
import { until } from '../support/waiting';

const EMBEDDED = { EVENTSTORE_URL: '', STREAM_PREFIX: '', MONGODB_URL: '' };
const LOGS = /logs_v\d+_\w+/;
const COMMAND = 'tenant-ledger projections rebuild';

const logsOf = ({ url, key }: ServiceProcess) => ask(`${url}/logs?size=100&entity_type=tenant`, { key });
const rename = ({ url, key }: ServiceProcess, name: string) =>
  ask(`${url}/tenants/self`, { method: 'PUT', key, body: { name } });
const health = ({ operationsUrl }: ServiceProcess) => ask(`${operationsUrl}/readyz`);

/** The file of the live generation of a projection. */
const fileOf = async (service: ServiceProcess, projection: string): Promise<string> => {
  const { projections } = (await health(service)).json as {
    projections: { projection: string; generation: string }[];
  };
  const name = projections.find((one) => one.projection === projection)?.generation;
  return join(service.folder, 'read-models', `${name}.db`);
};

const startAgain = async ({ folder, key }: ServiceProcess): Promise<ServiceProcess> => ({
  ...(await serviceProcess({ ...EMBEDDED, DATA_DIR: folder })),
  key,
});

/** A restart, so that everything is in the file and nothing in its `-wal`. */
const restarted = async (service: ServiceProcess): Promise<ServiceProcess> => {
  await service.stop();
  return startAgain(service);
};

const problemsOf = async (folder: string) => {
  const { stdout } = await operatorAt(folder, EMBEDDED, commandProcess).run('doctor --json');
  return (JSON.parse(stdout) as Finding[]).filter(({ status }) => status === 'problem');
};

describe('a damaged read model', () => {
  let service: ServiceProcess;
  let rows: unknown[];
  beforeAll(async () => {
    service = await serviceProcess(EMBEDDED);
    for (const name of ['A', 'B', 'C']) await rename(service, name);
    await allProjected(service);
    rows = (await logsOf(service)).json.data;
  });
  afterAll(async () => {
    await service.stop();
  });

  /** Several at once, since each start takes its time. */
  const together = [
    { logs: 'truncated to nothing', tenants: 'cut off in the middle', usage: 'overwritten at its start' },
    { logs: 'without one of its tables', tenants: 'overwritten after its first page', usage: 'deleted' },
  ];

  it('has every kind of damage done to it', () =>
    expect(together.flatMap((kinds) => Object.values(kinds)).toSorted()).toEqual(
      Object.keys(fileDamages).toSorted(),
    ));

  it.each(together)(
    'whose file was damaged while the service was stopped is built again by the next start, which says so: %j',
    async (kinds) => {
      const shown = async () => {
        const get = (path: string) => ask(`${service.url}${path}`, { key: service.key });
        const answers = [await get('/logs?size=100&entity_type=tenant'), await get('/tenants/self')];
        return [...answers, await get('/tenants/self/reports/usage')].map(({ json }) => json as unknown);
      };
      const before = await shown();
      const damages = Object.entries(kinds);
      const files = await Promise.all(damages.map(([projection]) => fileOf(service, projection)));
      await service.stop();
      for (const [at, [, how]] of damages.entries()) fileDamages[how]?.(files[at] ?? '', 'docs_rows');
      service = await startAgain(service);
      expect(await shown()).toEqual(before);
      expect((await health(service)).status).toBe(200);
      const warnings = service.stderr().match(/is damaged, so it is built again/g);
      expect(warnings).toHaveLength(damages.length);
      for (const file of files) expect(service.stderr()).toContain(file);
    },
  );

  it.each(Object.keys(fileDamages))(
    'whose file was %s beside the running service is reported, and rebuilt from the log alone',
    async (how) => {
      service = await restarted(service);
      const file = await fileOf(service, 'logs');
      fileDamages[how]?.(file, 'docs_rows');
      const change = await rename(service, how);
      expect(change.status).toBe(200);
      rows = [expect.objectContaining({ operation: 'update', entity_type: 'tenant' }), ...rows];
      const asked = await logsOf(service);
      // A file that was deleted can be read until it is closed.
      if (asked.status !== 200) {
        expectProblem(asked, { status: 503, code: 'read_models_unavailable' });
        expect(asked.text).not.toMatch(/\.db|SQL|malformed|no such/i);
      }
      await until(async () => (await health(service)).status === 503, 10_000);
      const { json } = await health(service);
      expect(json.reason).toMatch(LOGS);
      expect(json.reason).toContain(COMMAND);
      const projection = 'logs';
      expect(found(await scrape(service), 'tenant_ledger_projection_up', { projection })).toBe(0);
      expect(found(await scrape(service), 'tenant_ledger_projection_up', { projection: 'tenants' })).toBe(1);
      const tenant = () => ask(`${service.url}/tenants/self`, { key: service.key });
      await until(async () => (await tenant()).json.name === how);
      const operator = operatorAt(service.folder, EMBEDDED, commandProcess);
      if (how === 'cut off in the middle') {
        const [problems, status] = await Promise.all([problemsOf(service.folder), operator.run('status')]);
        expect(problems).toMatchObject([{ check: 'read models', finding: expect.stringContaining(COMMAND) }]);
        expect([status.code, status.stdout]).toEqual([1, expect.stringContaining(file)]);
      }
      const rebuilt = await operator.run('projections rebuild');
      expect([rebuilt.code, rebuilt.stderr]).toEqual([0, expect.stringMatching(/logs.*not compared/)]);
      await until(async () => (await health(service)).status === 200, 10_000);
      expect((await logsOf(service)).json.data).toEqual(rows);
    },
  );

  it('concerns only the commands that need it', async () => {
    const operator = operatorAt(service.folder, EMBEDDED, commandProcess);
    const [tenant] = await operator.json<{ tenant_id: string }[]>('tenant list');
    const facts = fileOfFacts([aFact(tenant!.tenant_id)]);
    const needs = /usage_v\d+_\w+ cannot be read: .* tenant-ledger projections rebuild/;
    const file = await fileOf(service, 'usage');
    await service.stop();
    fileDamages['cut off in the middle']?.(file, '');
    for (const [{ code, stdout, stderr }, shown] of [
      [await operator.run('tenant list'), tenant!.tenant_id],
      [await operator.run('ingest', facts), 'accepted:      1'],
    ] as const) {
      expect([code, stderr]).toEqual([0, expect.stringMatching(needs)]);
      expect(stdout).toContain(shown);
    }
    service = await startAgain(service);
    rows = (await logsOf(service)).json.data;
  });

  it('can also be rebuilt while the service is stopped', async () => {
    const file = await fileOf(service, 'logs');
    await service.stop();
    fileDamages['cut off in the middle']?.(file, '');
    const operator = operatorAt(service.folder, EMBEDDED, commandProcess);
    const { code, stderr } = await operator.run('projections rebuild');
    expect([code, stderr]).toEqual([0, expect.stringMatching(/logs.*not compared/)]);
    service = await startAgain(service);
    expect(service.stderr()).not.toContain('built again');
    expect((await logsOf(service)).json.data).toEqual(rows);
    expect(await problemsOf(service.folder)).toEqual([]);
  });
});

describe('a damaged file of snapshots', () => {
  let service: ServiceProcess;
  const path = () => join(service.folder, 'snapshots.db');

  beforeAll(async () => {
    service = await serviceProcess(EMBEDDED);
    const { json } = await ask(`${service.url}/applications/key`, { key: service.key });
    const { log, streams } = await openLogIn(service.folder);
    // Enough events for a snapshot.
    await fillStream(log, { tenantId: json.tenant_id, applicationId: json.id }, 600, streams);
    await log.close();
    expect((await rename(service, 'The last one')).status).toBe(200);
    await until(() => existsSync(path()));
    await service.stop();
  });

  /** Every kind of damage: the tests of snapshots. */
  it('affects nothing else, and is made again', async () => {
    fileDamages['cut off in the middle']?.(path(), 'tenants');
    service = await startAgain(service);
    expect((await rename(service, 'Renamed')).status).toBe(200);
    expect((await health(service)).status).toBe(200);
    await service.stop();
    expect(service.stderr().split('snapshots.db.damaged')).toHaveLength(2);
    expect(existsSync(`${path()}.damaged`)).toBe(true);
    const db = new DatabaseSync(path());
    expect(db.prepare('PRAGMA quick_check').all()).toEqual([{ quick_check: 'ok' }]);
    expect(db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'tenants'").get()).toBeDefined();
    db.close();
  });
});
