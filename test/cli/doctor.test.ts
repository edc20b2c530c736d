import { DatabaseSync } from '@photostructure/sqlite';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from '../../src/app/doctor';
import { beforeTests } from '../support/before-tests';
import { onDisk, whyNoDisks } from '../support/disks';
import { freshFolder } from '../support/folders';
import { ask } from '../support/http';
import { itIf } from '../support/it-if';
import { operatorAt } from '../support/operator';
import { EMBEDDED } from '../support/profile';
import { allProjected, serviceProcess } from '../support/service';
import { liveSetFile } from '../support/set-files';
import { until } from '../support/waiting';

const examine = async (folder: string, env: Readonly<Record<string, string>> = {}) => {
  const { code, stdout } = await operatorAt(folder, { ...EMBEDDED, ...env }).run('doctor --json');
  const findings = JSON.parse(stdout) as Finding[];
  return { code, problems: findings.filter(({ status }) => status === 'problem'), findings };
};

const edit = (folder: string, sql: string, file = 'events.db'): void => {
  const db = new DatabaseSync(join(folder, file));
  db.exec(sql);
  db.close();
};

/** By path, without the files that SQLite uses while a database is open. */
const contentsOf = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/-(shm|wal)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted()
      .map((path) => [path, createHash('sha256').update(readFileSync(path)).digest('hex')]),
  );

describe('tenant-ledger doctor', () => {
  const service = beforeTests(() => serviceProcess(EMBEDDED));
  beforeAll(async () => {
    await allProjected(service);
  });
  afterAll(async () => {
    await service.stop();
  });

  it('finds nothing wrong beside a healthy service, and lists what it checked', async () => {
    const { code, problems, findings } = await examine(service.folder);
    expect({ code, problems }).toEqual({ code: 0, problems: [] });
    expect(findings.map(({ check }) => check)).toEqual([
      'settings',
      'stores',
      'server',
      'room',
      'backup',
      'files',
      'read models',
      'parked tenants',
      'key of evidence',
    ]);
    expect(findings.at(-1)?.finding).toContain(join(service.folder, 'secret'));
    expect(findings.find(({ check }) => check === 'server')).toMatchObject({
      status: 'ok',
      finding: `One runs: ${service.url}.`,
    });
    const { stdout } = await operatorAt(service.folder, EMBEDDED).run('doctor');
    const withFix = findings.filter(({ fix }) => fix !== undefined);
    expect(stdout.trim().split('\n')).toHaveLength(findings.length + withFix.length);
  });

  it('warns of a missing or old backup and a server that does not run, which is no failure', async () => {
    const { folder, json } = operatorAt(freshFolder(), EMBEDDED);
    await json('tenant create --name Acme');
    const warnings = async () => {
      const { code, findings } = await examine(folder);
      expect(code).toBe(0);
      return findings
        .filter(({ status }) => status === 'warning')
        .map(({ check, finding }) => [check, finding]);
    };
    const noServer = ['server', 'None was found that is running.'];
    expect(await warnings()).toEqual([noServer, ['backup', 'None is known of this log.']]);
    await json('backup create', join(freshFolder(), 'backup'));
    expect(await warnings()).toEqual([noServer]);
    const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
    writeFileSync(join(folder, 'last-backup'), `${hoursAgo(27)}\n`);
    expect(await warnings()).toEqual([noServer, ['backup', 'The last one is 27 h old.']]);
    // That of another log is not its own.
    const other = { url: service.url, operations: service.operationsUrl };
    writeFileSync(join(folder, 'server.json'), JSON.stringify(other));
    expect(await warnings()).toContainEqual(noServer);
  });

  it.each([
    ['events.db', 'restore a backup'],
    ['a set of read models', 'projections rebuild'],
  ])('does not call %s whole that is damaged where nobody reads', async (which, fix) => {
    const { folder, json } = operatorAt(freshFolder(), EMBEDDED);
    await json('tenant create --name Acme');
    const file = which === 'events.db' ? join(folder, which) : liveSetFile(folder);
    const db = new DatabaseSync(file);
    db.exec('CREATE TABLE other (text); INSERT INTO other VALUES (1)');
    const { page } = db.prepare("SELECT rootpage AS page FROM sqlite_master WHERE name = 'other'").get() as {
      page: number;
    };
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    db.close();
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0xff, (page - 1) * 4_096, (page - 1) * 4_096 + 16));
    const { code, problems } = await examine(folder);
    expect(code).toBe(1);
    expect(problems).toMatchObject([
      {
        check: 'files',
        finding: expect.stringMatching(/ is damaged: [^\n]+\.$/),
        fix: expect.stringContaining(fix),
      },
    ]);
  });

  it.each<[string, () => [folder: string, env?: Record<string, string>], Partial<Finding>]>([
    [
      'an invalid setting',
      () => [service.folder, { PORT: 'many' }],
      { check: 'settings', finding: expect.stringContaining('PORT="many" is not valid') },
    ],
    [
      'a folder without data',
      () => [freshFolder()],
      { check: 'stores', finding: expect.stringContaining('There is no event log in the folder') },
    ],
  ])('reports %s, and what to do', async (_, given, expected) => {
    const { code, problems } = await examine(...given());
    expect(code).toBe(1);
    expect(problems).toContainEqual(expect.objectContaining(expected));
  });

  itIf(whyNoDisks === '', whyNoDisks)('reports a full disk', () =>
    onDisk('size=4m', async (disk) => {
      const folder = join(disk, 'data');
      await operatorAt(folder, EMBEDDED).json('tenant create --name Acme');
      const { bavail, bsize } = statfsSync(disk);
      writeFileSync(join(disk, 'filling'), Buffer.alloc(bavail * bsize - 65_536));
      const { problems } = await examine(folder);
      expect(problems).toMatchObject([{ check: 'room', fix: expect.stringContaining('projections prune') }]);
    }),
  );

  it.each<[string, (folder: string) => void, string | undefined]>([
    ['the service is stopped', () => undefined, undefined],
    [
      'there are no read models',
      (folder) => rmSync(join(folder, 'read-models'), { recursive: true }),
      'They are not built yet by this version of the program.',
    ],
    [
      'the read models are those of another version of the program',
      (folder) => edit(folder, `UPDATE roots SET version = 'other'`, 'read-models/root.db'),
      'They are not built yet by this version of the program.',
    ],
    [
      'the read models are damaged',
      (folder) => writeFileSync(liveSetFile(folder), 'x'.repeat(8_192)),
      'They are not built yet by this version of the program.',
    ],
  ])('changes nothing in the folder if %s', async (_, given, finding) => {
    const folder = freshFolder();
    await operatorAt(folder, EMBEDDED).json('tenant create --name Acme');
    given(folder);
    const before = contentsOf(folder);
    const { problems } = await examine(folder);
    expect(contentsOf(folder)).toEqual(before);
    const found = problems
      .filter(({ check }) => check === 'stores' || check === 'read models')
      .map((problem) => problem.finding);
    expect(found).toEqual(finding === undefined ? [] : [expect.stringContaining(finding)]);
  });

  it('reports a parked tenant, and how to proceed', async () => {
    const { json: tenant } = await ask(`${service.url}/tenants/self`, { key: service.key });
    edit(
      service.folder,
      `INSERT INTO events (position, stream, revision, id, type, data, metadata, recorded_at)
       SELECT max(position) + 1, 'activity-${tenant.id}', (SELECT max(revision) + 1 FROM events WHERE stream = 'activity-${tenant.id}'),
              '7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11', 'TokenExploded', '{}', '{}', ${Date.now()} FROM events`,
    );
    const parked = async () => {
      const { problems } = await examine(service.folder);
      return problems.find(({ check }) => check === 'parked tenants');
    };
    await until(async () => (await parked()) !== undefined);
    expect(await parked()).toMatchObject({
      finding: expect.stringContaining('7b1e8f0a-3f7e-4c9d-9a53-0d2f6c1b5a11'),
      fix: expect.stringContaining('projections set-aside'),
    });
  });
});
