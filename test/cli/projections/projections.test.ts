import { logs } from '../../../projections/logs';
import { pause } from '../../../src/async/clock';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { findTenant } from '../../../projections/tenants';
import { openApp, type App } from '../../../src/app/app';
import { readConfiguration } from '../../../src/configuration';
import type { LedgerStatus } from '../../../src/projecting/status';
import { generationName } from '../../../src/read-models/read-models';
import { openForWriting } from '../../../src/sqlite/database';
import { created, openLog, streams, updated } from '../../projecting/harness';
import { beside } from '../../support/beside';
import { ask } from '../../support/http';
import { operatorAt, type Operator } from '../../support/operator';
import { spawnProgram, startService, type Service } from '../../support/service';
import { until } from '../../support/waiting';
import { liveGeneration } from '../../support/generation-names';
import { leaseHolder, liveOf } from '../../support/generations';

const NOBODY = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';
const NAMES = ['tenants', 'applications', 'logs', 'usage'];

interface Report {
  readonly projections: readonly {
    readonly projection: string;
    readonly differences: number;
    readonly parked: string[];
  }[];
  readonly differences: readonly Record<string, unknown>[];
}

const opened: App[] = [];
afterAll(async () => {
  for (const app of opened) await app.close();
});
const appAt = async (folder: string): Promise<App> => {
  const app = await openApp(readConfiguration({ DATA_DIR: folder }), () => undefined);
  opened.push(app);
  return app;
};

/** Edits the file by hand, as none of our programs would. */
const editByHand = (folder: string, generation: string, sql: string, ...values: string[]): void => {
  const db = openForWriting(join(folder, 'read-models', `${generation}.db`), 'NORMAL');
  expect(db.prepare(sql).run(...values).changes).toBe(1);
  db.close();
};

/** Which generation the server itself reads now. */
const readBy = async ({ operationsUrl }: Service, projection: string): Promise<string> => {
  const { json } = await ask(`${operationsUrl}/readyz`);
  const all = json.projections as { projection: string; generation: string }[];
  return all.find((status) => status.projection === projection)?.generation ?? '';
};

describe('tenant-ledger projections beside a running server', () => {
  let service: Service;
  let operator: Operator;
  let tenantId: string;
  beforeAll(async () => {
    service = await startService();
    operator = operatorAt(service.folder);
    tenantId = await (await beside(service)).tenantId();
  });

  it('explains each command, and refuses wrong usage with exit code 2', async () => {
    const commands = ['rebuild', 'prune', 'verify', 'retry', 'set-aside'];
    const outer = await operator.run('projections --help');
    expect(outer.code).toBe(0);
    for (const name of commands) expect(outer.stdout).toContain(`  ${name} `);
    const helps = await operator.runAll(commands.map((name) => `projections ${name} --help`));
    for (const help of helps)
      expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('--json') });
    const wrong = [
      'projections',
      'projections rollback tenants',
      'projections rebuild tenants',
      'projections rebuild --if-equal',
      'projections verify tenants',
      'projections set-aside',
      `projections set-aside ${randomUUID()}`,
      'projections set-aside x --reason y',
      'projections verify --tenant x',
    ];
    for (const { code, stdout } of await operator.runAll(wrong)) expect([code, stdout]).toEqual([2, '']);
  });

  it('refuses what it cannot do with exit code 1, and says why', async () => {
    const refused = await operator.run(`projections set-aside ${NOBODY} --reason x`);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toMatch(new RegExp(`${NOBODY}.*\\[not_parked\\]`));
  });

  it('shows the read models, who projects them, and which are being rebuilt', async () => {
    const status = await operator.json<LedgerStatus>('status');
    expect(status.projector).toContain(String(process.pid));
    expect(status.projections).toEqual(
      NAMES.map((projection) => ({
        projection,
        generation: liveGeneration(service.folder, projection),
        position: status.log.head,
        lag_events: 0,
        lag_seconds: 0,
        parked: [],
      })),
    );
    expect(status.rebuilds).toEqual([]);
    const { readModels } = (await appAt(service.folder)).replay;
    const note = JSON.stringify({ step: 'building', done: 3, total: 8 });
    await readModels.lease(['rebuild logs'], 'somebody', note);
    const { rebuilds } = await operator.json<LedgerStatus>('status');
    expect(rebuilds).toEqual([{ projection: 'logs', holder: 'somebody', step: 'building', progress: 0.375 }]);
    const plain = await operator.run('status');
    expect([plain.code, plain.stderr]).toEqual([0, '']);
    for (const name of NAMES) expect(plain.stdout).toContain(liveGeneration(service.folder, name));
    expect(plain.stdout).toMatch(/Rebuilding:\n.*\nlogs +somebody +building +37%/);
    await readModels.release(['rebuild logs'], 'somebody');
    expect(await operator.json('projections retry')).toEqual({ retry: 'asked' });
  });

  it('finds a document edited by hand, which a rebuild repairs', async () => {
    const sql = `UPDATE docs_tenants SET document = json_set(document, '$.name', ?) WHERE key = 'self'
      AND tenant = (SELECT number FROM tenants WHERE tenant = ?)`;
    editByHand(service.folder, liveGeneration(service.folder, 'tenants'), sql, 'Edited by hand', tenantId);
    const found = await operator.run('projections verify --json');
    expect(found.code).toBe(1);
    const report = JSON.parse(found.stdout) as Report;
    expect(report.projections.map(({ projection, differences }) => [projection, differences])).toEqual([
      ['tenants', 1],
      ['applications', 0],
      ['logs', 0],
      ['usage', 0],
    ]);
    expect(report.differences).toEqual([
      {
        projection: 'tenants',
        kind: 'differs',
        tenant_id: tenantId,
        collection: 'tenants',
        key: 'self',
        live: expect.objectContaining({ name: 'Edited by hand', id: tenantId }),
        replayed: expect.objectContaining({ id: tenantId }),
      },
    ]);
    const plain = await operator.run(`projections verify --tenant ${tenantId}`);
    expect(plain.code).toBe(1);
    expect(plain.stderr).toContain('Edited by hand');
    expect((await operator.run(`projections verify --tenant ${randomUUID()}`)).code).toBe(0);

    const before = liveGeneration(service.folder, 'tenants');
    const refused = await operator.run('projections rebuild --json');
    expect(refused.code).toBe(4);
    expect(JSON.parse(refused.stdout)).toMatchObject(
      ['applications', 'logs', 'usage'].map((projection) => ({ projection, differences: 0, parked: 0 })),
    );
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'rebuild_differs' } });
    expect(liveGeneration(service.folder, 'tenants')).toBe(before);
    const again = await operator.run('projections rebuild');
    expect(again.code).toBe(4);
    for (const says of ['[rebuild_differs]', 'Edited by hand', '--accept-differences'])
      expect(again.stderr).toContain(says);
    const accepted = 'projections rebuild --accept-differences';
    const [rebuilt] = await operator.json<Record<string, unknown>[]>(accepted);
    expect(rebuilt).toMatchObject({
      projection: 'tenants',
      documents_compared: 1,
      differences: 1,
      parked: 0,
    });
    await until(async () => (await readBy(service, 'tenants')) === rebuilt?.['generation']);
    const { json } = await ask(`${service.url}/tenants/self`, { key: service.key });
    expect(json.name).not.toBe('Edited by hand');
    expect((await operator.run('projections verify')).code).toBe(0);
  });

  it('prunes only after confirmation', async () => {
    await operator.json('projections rebuild');
    const { readModels } = (await appAt(service.folder)).replay;
    const unused = (await readModels.state()).generations
      .filter(({ isLive }) => !isLive)
      .map((id) => generationName(id));
    expect(unused.length).toBeGreaterThanOrEqual(4);
    const asked = await operator.run('projections prune');
    expect([asked.code, asked.stdout]).toEqual([1, '']);
    expect(asked.stderr).toContain('--yes');
    for (const generation of unused) expect(asked.stderr).toContain(generation);
    const asJson = await operator.run('projections prune --json');
    expect([asJson.code, asJson.stdout]).toEqual([1, '']);
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'not_confirmed' } });
    const removed = await operator.json<{ removed: string }[]>('projections prune --yes');
    expect(removed.map((generation) => generation.removed).toSorted()).toEqual(unused.toSorted());
    expect((await readModels.state()).generations).toHaveLength(4);
    expect(await operator.json('projections prune')).toEqual([]);
    expect((await ask(`${service.url}/tenants/self`, { key: service.key })).status).toBe(200);
  });
});

describe('tenant-ledger projections beside another server', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
  });

  it('shows a poisoned tenant among 200 parked within seconds, delaying no other, and unparks it by setting the event aside', async () => {
    const operator = operatorAt(service.folder);
    const app = await appAt(service.folder);
    const log = await openLog(service.folder);
    const ids = Array.from({ length: 200 }, () => randomUUID());
    for (const tenantId of ids) await log.record(streams.tenant(tenantId), created());
    const [bad = ''] = ids;
    const eventId = log.plant(streams.tenant(bad), { type: 'TenantUpdated', data: '{"name":' });
    await log.record(streams.tenant(bad), updated('waits'));
    let slowest = 0;
    await Promise.all(
      ids.slice(50).map((tenantId) => log.record(streams.tenant(tenantId), updated('goes on'))),
    );
    for (const tenantId of ids.slice(1, 50)) {
      const startedAt = performance.now();
      const { position } = await log.record(streams.tenant(tenantId), updated('goes on'));
      expect(await app.projecting.reached(position, 2_000)).toBe(true);
      slowest = Math.max(slowest, performance.now() - startedAt);
    }
    expect(slowest).toBeLessThan(2_000);
    const status = await operator.run('status --json');
    expect(status.code).toBe(1);
    for (const { parked } of (JSON.parse(status.stdout) as LedgerStatus).projections)
      expect(parked).toMatchObject([{ tenant_id: bad, event_id: eventId }]);
    const verified = await operator.run('projections verify --json');
    expect(verified.code).toBe(1);
    for (const one of (JSON.parse(verified.stdout) as Report).projections)
      expect(one).toMatchObject({ differences: 0, parked: [bad] });

    expect((await findTenant(app.projecting.reader('tenants'), bad))?.name).toBe('A tenant');
    const done = await operator.json('projections set-aside', eventId, '--reason', 'A torn row.');
    expect(done).toEqual({ event_id: eventId, tenant_id: bad, projections: NAMES, retry: 'asked' });
    await until(async () => !(await app.projecting.isParked(bad)));
    expect((await findTenant(app.projecting.reader('tenants'), bad))?.name).toBe('waits');
    expect(
      (await operator.json<LedgerStatus>('status')).projections.every(({ parked }) => parked.length === 0),
    ).toBe(true);
    const rebuilt = await operator.json<Record<string, unknown>[]>('projections rebuild');
    expect(rebuilt).toHaveLength(4);
    for (const row of rebuilt) expect(row).toMatchObject({ differences: 0, parked: 0 });
    console.log(`poisoned tenant: the slowest of 49 others was shown after ${Math.round(slowest)} ms`);
  });

  it('leaves the live generations unchanged if a rebuild is killed, which succeeds when it is run again', async () => {
    const { folder } = service;
    const log = await openLog(folder);
    for (let i = 0; i < 12; i++)
      await log.record(
        streams.tenant(randomUUID()),
        created(),
        ...Array.from({ length: 300 }, (_, n) => updated(`${n}`)),
      );
    const operator = operatorAt(folder);
    const app = await appAt(folder);
    const { readModels } = app.replay;
    for (const after of [0, 200]) {
      const child = spawnProgram(['projections', 'rebuild'], { DATA_DIR: folder });
      const ended = once(child, 'close');
      await until(async () => (await leaseHolder(readModels, 'rebuild logs')) !== undefined);
      await pause(after); // somewhere in the middle of the work
      child.kill('SIGKILL');
      await ended;
      expect((await ask(`${service.url}/tenants/self`, { key: service.key })).status).toBe(200);
    }
    const before = await liveOf(readModels, logs);
    const rebuilt = await operator.run('projections rebuild --json');
    expect([rebuilt.code, rebuilt.stderr]).toEqual([0, '']);
    expect(JSON.parse(rebuilt.stdout)).toMatchObject(NAMES.map(() => ({ differences: 0, parked: 0 })));
    expect(await liveOf(readModels, logs)).not.toBe(before);
    expect((await operator.run('projections verify')).code).toBe(0);
  });
});
