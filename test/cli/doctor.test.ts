import { DatabaseSync } from '@photostructure/sqlite';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import type { Finding } from '../../src/app/doctor';
import { onDisk, whyNoDisks } from '../support/disks';
import { ask } from '../support/http';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { operatorAt } from '../support/operator';
import { allProjected, serviceProcess, type Service } from '../support/service';
import { until } from '../support/waiting';

const EMBEDDED = { EVENTSTORE_URL: '', MONGODB_URL: '' };

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

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

describe('tenant-ledger doctor', () => {
  let service: Service;
  beforeAll(async () => {
    service = await serviceProcess(EMBEDDED);
    await allProjected(service);
  });
  afterAll(async () => {
    await service.stop();
  });

  const broken = (sql: string): string => {
    const folder = freshFolder();
    cpSync(service.folder, folder, { recursive: true });
    edit(folder, sql);
    return folder;
  };

  it('finds nothing wrong beside a healthy service, and lists what it checked', async () => {
    const { code, problems, findings } = await examine(service.folder);
    expect({ code, problems }).toEqual({ code: 0, problems: [] });
    const checks = [
      'configuration',
      'data folder',
      'disk',
      'stores',
      'versions',
      'event log',
      'streams',
      'indexes',
      'writing',
    ];
    expect(findings.map(({ check }) => check)).toEqual(
      expect.arrayContaining([...checks, 'projector', 'read models', 'parked tenants', 'decisions']),
    );
    expect(findings.find(({ check }) => check === 'versions')?.finding).toMatch(
      /Node \d+.*, SQLite \d+\.\d+/,
    );
    const { stdout } = await operatorAt(service.folder, EMBEDDED).run('doctor');
    expect(stdout.trim().split('\n')).toHaveLength(findings.length);
  });

  it.each<[string, () => [folder: string, env?: Record<string, string>], Partial<Finding>]>([
    [
      'an invalid setting',
      () => [service.folder, { PORT: 'many' }],
      { check: 'configuration', finding: expect.stringContaining('PORT="many" is not valid') },
    ],
    [
      'a folder without data',
      () => [freshFolder()],
      { check: 'stores', finding: expect.stringContaining('There is no event log in the folder') },
    ],
    [
      'a proxy that does not exist',
      () => [service.folder, { PUBLIC_URL: 'https://127.0.0.1:1' }],
      { check: 'certificate', fix: expect.stringContaining('PUBLIC_URL') },
    ],
    [
      'a certificate authority that cannot be read',
      () => [
        service.folder,
        {
          EVENTSTORE_URL: 'esdb://127.0.0.1:1?tls=true&tlsCAFile=/nowhere/ca.crt',
          MONGODB_URL: 'mongodb://127.0.0.1:1/x',
        },
      ],
      { check: 'certificate', fix: expect.stringContaining('tlsCAFile') },
    ],
  ])('reports %s, and what to do', async (_, given, expected) => {
    const { code, problems } = await examine(...given());
    expect(code).toBe(1);
    expect(problems).toContainEqual(expect.objectContaining(expected));
  });

  itIf(whyNoDisks === '', whyNoDisks)('does not advise to start a service on a full disk', () =>
    onDisk('size=4m', async (disk) => {
      const folder = join(disk, 'data');
      await operatorAt(folder, EMBEDDED).json('tenant create --name Acme');
      const { bavail, bsize } = statfsSync(disk);
      writeFileSync(join(disk, 'filling'), Buffer.alloc(bavail * bsize - 65_536));
      const { problems } = await examine(folder);
      const fixOf = (name: string) => problems.find(({ check }) => check === name)?.fix;
      expect(problems.find(({ check }) => check === 'writing')?.finding).toMatch(
        /full disk\. Free some space/,
      );
      expect(fixOf('projector')).toBe('First make writing possible: until then, no service can project.');
    }),
  );

  itIf(process.getuid !== undefined, 'no file modes')('reports data that others may read', async () => {
    const folder = broken('SELECT 1');
    chmodSync(folder, 0o755);
    chmodSync(join(folder, 'events.db'), 0o644);
    const { code, problems } = await examine(folder);
    expect(code).toBe(1);
    expect(problems).toContainEqual(
      expect.objectContaining({ check: 'data folder', fix: `chmod -R go= ${folder}` }),
    );
  });

  itIf(hasOpenssl, 'no openssl')('reports a certificate that expires soon', async () => {
    const folder = freshFolder();
    const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
    const request = `req -x509 -newkey rsa:2048 -nodes -days 3 -subj /CN=localhost -keyout ${key} -out ${certificate}`;
    expect(spawnSync('openssl', request.split(' ')).status).toBe(0);
    const server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    try {
      const { port } = server.address() as AddressInfo;
      for (const host of ['127.0.0.1', '[::1]']) {
        const { problems } = await examine(service.folder, { PUBLIC_URL: `https://${host}:${port}` });
        expect(problems).toEqual([
          expect.objectContaining({ check: 'certificate', finding: expect.stringContaining('expires on') }),
        ]);
      }
    } finally {
      server.close();
    }
  });

  it.each<[string, (folder: string) => void, string | undefined]>([
    ['the service is stopped', () => undefined, undefined],
    [
      'there are no read models',
      (folder) => rmSync(join(folder, 'read-models'), { recursive: true }),
      'Not built yet by this version of the program: tenants, applications, logs, usage.',
    ],
    [
      'the read models are those of another version of the program',
      (folder) => edit(folder, 'UPDATE generations SET version = 1', 'read-models/registry.db'),
      'Not built yet by this version of the program: tenants, applications, logs, usage.',
    ],
    [
      'the registry of the read models is damaged',
      (folder) => writeFileSync(join(folder, 'read-models', 'registry.db'), 'x'.repeat(8_192)),
      'registry.db cannot be read',
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
