import { PROGRESS } from '../../projections/projector';
import { DatabaseSync } from '@photostructure/sqlite';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { findTenant } from '../../projections/tenants';
import { projector } from '../../src/app/adapters';
import type { App } from '../../src/app/app';
import type { LedgerStatus } from '../../src/app/status';
import { pause } from '../../src/async/clock';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { created, openLog, streams, updated } from '../projecting/harness';
import { beside } from '../support/beside';
import { fileOf } from '../support/fact-file';
import { aFact } from '../support/facts';
import { ask, rename } from '../support/http';
import { operatorAt, type Operator } from '../support/operator';
import { EMBEDDED, openAppIn } from '../support/profile';
import { spawnProgram, startService, type Service } from '../support/service';
import { liveSetFile, liveSetId } from '../support/set-files';
import { until } from '../support/waiting';

const NOBODY = '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11';
const COLLECTIONS = [...projector.collections, PROGRESS].map(({ name }) => name);

interface Report {
  readonly documents: number;
  readonly differences: number;
  readonly parked: readonly string[];
  readonly gaps: readonly unknown[];
  readonly documents_that_differ: readonly {
    readonly kind: string;
    readonly tenant_id: string;
    readonly collection: string;
    readonly key: string;
    readonly live: Record<string, unknown> | null;
    readonly replayed: Record<string, unknown> | null;
  }[];
}

const opened: App[] = [];
afterAll(async () => {
  for (const app of opened) await app.close();
});
const appAt = async (folder: string): Promise<App> => {
  const app = await openAppIn(folder, EMBEDDED);
  opened.push(app);
  return app;
};

const editByHand = (path: string, ...statements: readonly string[]): void => {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  for (const sql of statements) expect([sql, db.prepare(sql).run().changes]).toEqual([sql, 1]);
  db.close();
};

/** Makes a set look abandoned. One that was killed before it had tables is as old as its file. */
const makeOld = (folder: string, id: string): void => {
  const path = join(folder, 'read-models', `set-${projector.version}-${id}.db`);
  const db = new DatabaseSync(path, { timeout: 5_000 });
  const isCreated = db.prepare("SELECT name FROM sqlite_master WHERE name = 'control'").get() !== undefined;
  db.close();
  if (isCreated) editByHand(path, MAKE_OLD);
  else utimesSync(path, 0, 0);
};

const keysIn = (folder: string, collection: string): readonly string[] => {
  const db = new DatabaseSync(liveSetFile(folder), { readOnly: true });
  const rows = db.prepare(`SELECT key FROM docs_${collection} ORDER BY key`).all();
  db.close();
  return rows.map(({ key }) => String(key));
};

/** Adds a document of the only tenant to a collection, changes the first one and removes the last one. */
const editsOf = (folder: string, tenantId: string, name: string) => {
  const table = `docs_${name}`;
  const keys = keysIn(folder, name);
  const [first, last] = [keys[0], keys.slice(1).at(-1)];
  const values = `(SELECT number FROM tenants WHERE tenant = '${tenantId}'), '~', '{}'`;
  const changing = `UPDATE ${table} SET document = json_set(document, '$.edited', 'by hand')`;
  return [
    { name, kind: 'too_many', sql: `INSERT INTO ${table} (tenant, key, document) VALUES (${values})` },
    ...(first === undefined ? [] : [{ name, kind: 'differs', sql: `${changing} WHERE key = '${first}'` }]),
    ...(last === undefined
      ? []
      : [{ name, kind: 'missing', sql: `DELETE FROM ${table} WHERE key = '${last}'` }]),
  ];
};

/** A minute ago, so that it may be removed. */
const MAKE_OLD = `UPDATE control SET state = json_set(state, '$.renewedAt', '2020-01-01T00:00:00.000Z',
  '$.supersededAt', '2020-01-01T00:00:00.000Z')`;

const readBy = async ({ operationsUrl }: Service): Promise<string> =>
  String((await ask(`${operationsUrl}/readyz`)).json.read_models.set);

const idsOfSets = async ({ readModels }: App): Promise<readonly string[]> =>
  (await readModels.list()).map(({ id }) => id).toSorted();

describe('tenant-ledger projections beside a running server', () => {
  let service: Service;
  let operator: Operator;
  let tenantId: string;
  beforeAll(async () => {
    service = await startService(EMBEDDED);
    operator = operatorAt(service.folder, EMBEDDED);
    tenantId = await (await beside(service)).tenantId();
    await operator.json('ingest', fileOf([aFact(tenantId)]));
  });

  const tenantNow = () => ask(`${service.url}/tenants/self`, { key: service.key });
  const verified = async (line = 'projections verify'): Promise<{ code: number | null; report: Report }> => {
    const { code, stdout } = await operator.run(`${line} --json`);
    return { code, report: JSON.parse(stdout) as Report };
  };

  it('refuses what it cannot do with exit code 1, and says why', async () => {
    const refused = await operator.run(`projections set-aside ${NOBODY} --reason x`);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toMatch(new RegExp(`${NOBODY}.*\\[not_parked\\]`));
  });

  it('shows the read models, and how far a rebuild is', async () => {
    const status = await operator.json<LedgerStatus>('status');
    const upToDate = {
      set: liveSetId(service.folder),
      position: status.log.head,
      lag_events: 0,
      lag_seconds: 0,
      parked: [],
    };
    expect(status).toMatchObject({ read_models: { ...upToDate, building: null }, unreadable: [] });
    expect(status).not.toHaveProperty('projector');
    const { readModels } = await appAt(service.folder);
    const { id } = await readModels.create(status.log.identity);
    const { read_models } = await operator.json<LedgerStatus>('status');
    expect(read_models).toEqual({ ...upToDate, building: { set: id, position: null, progress: 0 } });
    const plain = await operator.run('status');
    expect([plain.code, plain.stderr]).toEqual([0, '']);
    expect(plain.stdout).toMatch(new RegExp(`^read_models: +${upToDate.set}$`, 'm'));
    expect(plain.stdout).toMatch(new RegExp(`^building: +${id} 0%$`, 'm'));
    expect(await operator.json('projections retry')).toEqual({ still_parked: [] });
  });

  it('compares every document of every collection', async () => {
    const { code, report } = await verified();
    expect(code).toBe(0);
    expect(report).toMatchObject({ differences: 0, parked: [], gaps: [], documents_that_differ: [] });
    const counts = COLLECTIONS.map((name) => keysIn(service.folder, name).length);
    expect(report.documents).toBe(counts.reduce((sum, one) => sum + one, 0));
  });

  it('finds a document of any collection that was changed, removed or added by hand, which a rebuild repairs', async () => {
    const edits = COLLECTIONS.flatMap((name) => editsOf(service.folder, tenantId, name));
    for (const kind of ['differs', 'missing', 'too_many'])
      expect(edits.filter((one) => one.kind === kind).length).toBeGreaterThan(3);
    editByHand(liveSetFile(service.folder), ...edits.map(({ sql }) => sql));
    const { code, report } = await verified();
    expect(code).toBe(1);
    const found = report.documents_that_differ.map(({ collection, kind }) => `${collection} ${kind}`);
    expect(found.toSorted()).toEqual(edits.map(({ name, kind }) => `${name} ${kind}`).toSorted());
    expect(report.differences).toBe(edits.length);
    for (const { kind, live, replayed, tenant_id } of report.documents_that_differ) {
      expect(tenant_id).toBe(tenantId);
      if (kind === 'too_many') expect([live, replayed]).toEqual([{}, null]);
      if (kind === 'missing') expect([live, replayed]).toEqual([null, expect.any(Object)]);
      if (kind === 'differs') expect(live).toEqual({ ...replayed, edited: 'by hand' });
    }
    const plain = await operator.run(`projections verify --tenant ${tenantId}`);
    expect([plain.code, plain.stderr]).toEqual([1, expect.stringContaining('"edited":"by hand"')]);
    expect((await operator.run(`projections verify --tenant ${randomUUID()}`)).code).toBe(0);

    const before = liveSetId(service.folder);
    const refused = await operator.run('projections rebuild --json');
    expect([refused.code, refused.stdout]).toEqual([4, '']);
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'rebuild_differs' } });
    const again = await operator.run('projections rebuild');
    expect(again.code).toBe(4);
    for (const says of ['[rebuild_differs]', '"edited":"by hand"', '--accept-differences'])
      expect(again.stderr).toContain(says);
    expect([liveSetId(service.folder), await readBy(service)]).toEqual([before, before]);

    const rebuilt = await operator.json<Record<string, unknown>>('projections rebuild --accept-differences');
    expect(rebuilt).toMatchObject({ differences: edits.length, parked: 0 });
    expect(await readBy(service)).toBe(rebuilt['set']);
    expect((await tenantNow()).json).not.toHaveProperty('edited');
    expect((await verified()).report.differences).toBe(0);
  });

  it('switches the running server to what was rebuilt, at once', async () => {
    const before = await readBy(service);
    const name = `Before ${before}`;
    expect((await rename(service, service.key, name)).status).toBe(200);
    const { set, events, ...compared } = await operator.json<Record<string, unknown>>('projections rebuild');
    expect(compared).toEqual({ documents_compared: expect.any(Number), differences: 0, parked: 0 });
    expect(set).not.toBe(before);
    expect(await readBy(service)).toBe(set);
    expect((await tenantNow()).json.name).toBe(name);
    const { log, read_models } = await operator.json<LedgerStatus>('status');
    expect([read_models.set, read_models.position]).toEqual([set, log.head]);
    expect(events).toBe((await (await beside(service)).events()).length);
  });

  it('prunes only after confirmation, and only what nobody has used for a minute', async () => {
    const app = await appAt(service.folder);
    const live = liveSetId(service.folder);
    const other = sqliteReadModels({
      folder: join(service.folder, 'read-models'),
      version: 'other',
      collections: projector.collections,
    });
    const ofOther = await other.create('log');
    await other.succeed(ofOther, undefined);
    await other.close();
    const unused = (await idsOfSets(app)).filter((id) => id !== live);
    expect(unused.length).toBeGreaterThan(1);

    const asked = await operator.run('projections prune');
    expect([asked.code, asked.stdout]).toEqual([1, '']);
    expect(asked.stderr).toContain('--yes');
    for (const id of unused) expect(asked.stderr).toContain(id);
    const asJson = await operator.run('projections prune --json');
    expect([asJson.code, asJson.stdout]).toEqual([1, '']);
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'not_confirmed' } });
    expect(await operator.json('projections prune --yes')).toEqual([]);

    const files = (await app.readModels.list()).map(({ id, version }) => [id, version] as const);
    for (const [id, version] of files)
      if (id !== live) editByHand(join(service.folder, 'read-models', `set-${version}-${id}.db`), MAKE_OLD);
    const removed = await operator.json<{ removed: string }[]>('projections prune --yes');
    expect(removed.map((one) => one.removed).toSorted()).toEqual(unused);
    expect(await idsOfSets(app)).toEqual([live]);
    expect(await operator.json('projections prune')).toEqual([]);
    expect((await tenantNow()).status).toBe(200);
  });
});

describe('tenant-ledger projections beside another server', () => {
  let service: Service;
  let operator: Operator;
  beforeAll(async () => {
    service = await startService(EMBEDDED);
    operator = operatorAt(service.folder, EMBEDDED);
  });

  it('shows one poisoned tenant of many as parked, which delays no other, and releases it by setting the event aside', async () => {
    const app = await appAt(service.folder);
    const log = await openLog(service.folder);
    const ids = Array.from({ length: 40 }, () => randomUUID());
    for (const tenantId of ids) await log.record(streams.tenant(tenantId), created());
    const [bad = ''] = ids;
    const eventId = log.plant(streams.tenant(bad), { type: 'TenantUpdated', data: '{"name":' });
    await log.record(streams.tenant(bad), updated('waits'));
    for (const tenantId of ids.slice(1)) {
      const { position } = await log.record(streams.tenant(tenantId), updated('goes on'));
      expect(await app.catchUp(position, 2_000)).toBe(true);
    }
    const nameOf = async (tenantId: string) =>
      (await findTenant((await app.live.look()).set, tenantId))?.name;
    expect(await Promise.all(ids.map(nameOf))).toEqual(['A tenant', ...ids.slice(1).map(() => 'goes on')]);

    const status = await operator.run('status --json');
    expect(status.code).toBe(1);
    const parkedThere = [expect.objectContaining({ tenant_id: bad, event_id: eventId })];
    expect(JSON.parse(status.stdout)).toMatchObject({
      read_models: { parked: parkedThere, lag_events: 0 },
      unreadable: parkedThere,
    });
    expect((await operator.run('status')).stdout).toMatch(
      new RegExp(`^read models +${bad} +${eventId}`, 'm'),
    );
    const verified = await operator.run('projections verify --json');
    expect(verified.code).toBe(1);
    expect(JSON.parse(verified.stdout)).toMatchObject({ differences: 0, parked: [bad] });
    expect(await operator.json(`projections retry --tenant ${bad}`)).toEqual({ still_parked: [bad] });

    const { stdout: torn } = await operator.run(`audit --event ${eventId}`);
    expect(torn).toContain(`"data":{"base64":"${Buffer.from('{"name":').toString('base64')}"}`);
    const done = await operator.json('projections set-aside', eventId, '--reason', 'A torn row.');
    expect(done).toEqual({ event_id: eventId, tenant_id: bad, what: 'event skipped', parked_at: null });
    expect(await nameOf(bad)).toBe('waits');
    expect((await operator.json<LedgerStatus>('status')).read_models.parked).toEqual([]);
    expect(await operator.json('projections rebuild')).toMatchObject({ differences: 0, parked: 0 });
    expect((await operator.run('projections verify')).code).toBe(0);
  });

  it('accepts a gap by setting the event after it aside', async () => {
    const { folder, key } = service;
    await service.stop(); // so that it does not see the event before it is lost
    const log = await openLog(folder);
    const tenantId = randomUUID();
    const events = [created(), updated('lost'), updated('after the gap')];
    const ids = events.map(() => randomUUID());
    await log.record(
      streams.tenant(tenantId),
      ...events.map((event, at) => ({ ...event, id: ids[at] ?? '' })),
    );
    log.lose(streams.tenant(tenantId), 1);
    service = { ...(await startService({ ...EMBEDDED, DATA_DIR: folder })), key };
    const status = async () => (await operator.run('status --json')).stdout;
    await until(async () => (await status()).includes('missing_events'));
    const verified = await operator.run(`projections verify --tenant ${tenantId} --json`);
    expect(verified.code).toBe(1);
    expect(JSON.parse(verified.stdout)).toMatchObject({ gaps: [{ tenant_id: tenantId, event_id: ids[2] }] });
    const done = await operator.json('projections set-aside', ids[2] ?? '', '--reason', 'It is lost.');
    expect(done).toMatchObject({ tenant_id: tenantId, what: 'gap accepted', parked_at: null });
    const decided = await operator.run(`application create --tenant ${tenantId} --name Never --type public`);
    expect([decided.code, decided.stderr]).toEqual([1, expect.stringContaining('[tenant_unreadable]')]);
    expect((await operator.run('projections verify')).code).toBe(0);
  });

  it('leaves the live read models unchanged if a rebuild is killed, which succeeds when it is run again', async () => {
    const { folder } = service;
    const log = await openLog(folder);
    for (let i = 0; i < 12; i++) {
      const names = Array.from({ length: 300 }, (_, n) => updated(`${n}`));
      await log.record(streams.tenant(randomUUID()), created(), ...names);
    }
    const app = await appAt(folder);
    expect(await app.catchUp((await log.head())?.position ?? '', 30_000)).toBe(true);
    const before = liveSetId(folder);
    const left: string[] = [];
    for (const after of [0, 200]) {
      const known = new Set(await idsOfSets(app));
      const child = spawnProgram(['projections', 'rebuild'], { DATA_DIR: folder, ...EMBEDDED });
      const ended = once(child, 'close');
      const begun = async () => (await idsOfSets(app)).filter((id) => !known.has(id));
      await until(async () => (await begun()).length > 0);
      await pause(after); // somewhere in the middle of the work
      child.kill('SIGKILL');
      await ended;
      left.push(...(await begun()));
      expect(liveSetId(folder)).toBe(before);
      expect((await ask(`${service.url}/tenants/self`, { key: service.key })).status).toBe(200);
    }
    for (const id of left) makeOld(folder, id);
    expect(await operator.json('projections rebuild')).toMatchObject({ differences: 0, parked: 0 });
    expect(liveSetId(folder)).not.toBe(before);
    expect((await idsOfSets(app)).filter((id) => left.includes(id))).toEqual([]);
    expect((await operator.run('projections verify')).code).toBe(0);
  });

  it('fails a verification while events are missing from the log, although nothing differs', async () => {
    const log = await openLog(service.folder);
    const tenantId = randomUUID();
    await log.record(streams.tenant(tenantId), created(), updated('lost'), updated('after the gap'));
    const app = await appAt(service.folder);
    expect(await app.catchUp((await log.head())?.position ?? '', 30_000)).toBe(true);
    log.lose(streams.tenant(tenantId), 1);
    const { code, stdout } = await operator.run('projections verify --json');
    expect(code).toBe(1);
    const found = { differences: 0, parked: [], gaps: [{ tenant_id: tenantId }] };
    expect(JSON.parse(stdout)).toMatchObject(found);
  });
});
