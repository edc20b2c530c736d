import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeReadOnly, onDisk, whyNoDisks } from '../support/disks';
import { freshFolder } from '../support/folders';
import { filesWith } from '../support/found-text';
import { ask, type ApiResponse } from '../support/http';
import { nobody } from '../support/nobody';
import { operatorAt } from '../support/operator';
import { ownTimeMs } from '../support/own-time';
import {
  command,
  commandProcess,
  outputsOf,
  serviceProcess,
  startService,
  type Finished,
  type Service,
} from '../support/service';
import { until } from '../support/waiting';

const ROOT = join(__dirname, '..', '..', '..');
const PROGRAM = join(ROOT, 'src', 'tenant-ledger.cjs');
const PATH = process.env['PATH'] ?? '';

/** Exactly as a shell would run it. */
const shell = async (line: string, env: Readonly<Record<string, string>> = {}): Promise<string> =>
  (await promisify(execFile)('sh', ['-c', line], { cwd: ROOT, env: { PATH, ...env } })).stdout;

const indented = (text: string): readonly string[] =>
  text.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.trim()] : []));

describe('npm start', () => {
  it('makes a demo, and is the server itself once it has built: a signal reaches it', async () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: { start: string };
    };
    const [progress, build, serve] = scripts.start.split(' && ') as [string, string, string];
    expect([progress, build]).toEqual([
      expect.stringMatching(/^echo 'Building,.*' >&2$/),
      'npm run --silent build',
    ]);
    const env = { PATH, DATA_DIR: freshFolder(), PORT: '0', OPS_PORT: '0' };
    const child = spawn('sh', ['-c', `true && ${serve}`], { cwd: ROOT, env });
    const { stdout, stderr } = outputsOf(child);
    const closed = once(child, 'close');
    await until(() => stdout().includes('API key (shown once, keep it): key_'));
    child.kill('SIGTERM');
    // Its output is closed only when nobody who could write to it is left.
    expect(await closed).toEqual([0, null]);
    expect(stderr()).toContain('"msg":"stopped"');
  });
});

describe('a first start', () => {
  let service: Service;
  beforeAll(async () => {
    service = await serviceProcess();
  });
  afterAll(() => service.stop());

  it('prints where it serves and the key, once', async () => {
    const { stdout, url, key } = service;
    expect(stdout()).toContain(`tenant-ledger serves ${url}\n`);
    expect(stdout()).toContain(`API key (shown once, keep it): ${key}\n`);
    expect(stdout()).toContain(`Web console: ${url}/portal\n`);
    expect(service.stderr()).not.toContain(key.slice(4));
    expect(filesWith(key.slice(4), service.folder)).toEqual([]);
  });

  it('prints curl lines that work exactly as printed', async () => {
    const lines = indented(service.stdout());
    expect(lines).toHaveLength(3);
    const answers = [];
    for (const line of lines) answers.push(JSON.parse(await shell(line)) as Record<string, unknown>);
    expect(answers).toMatchObject([
      { name: 'Demo tenant' },
      { name: 'My first tenant' },
      { pagination: { page_size: 5 }, data: [{ message: 'Tenant updated' }, {}, {}, {}, {}] },
    ]);
  });

  describe('and a clean stop', () => {
    let before: ApiResponse;
    let key = '';
    const copy = freshFolder();
    beforeAll(async () => {
      ({ key } = service);
      await ask(`${service.url}/tenants/self`, { method: 'PUT', key, body: { name: 'Kept' } });
      before = await ask(`${service.url}/tenants/self`, { key });
      expect(await service.stop()).toBe(0);
      copyFileSync(join(service.folder, 'events.db'), join(copy, 'events.db'));
    });

    it('is followed by a start that gives its first response in under 2 seconds', async () => {
      let fastest = Infinity;
      for (let turn = 0; turn < 3 && fastest >= 2_000; turn += 1)
        fastest = Math.min(fastest, await timeToFirstAnswer(service.folder, key));
      expect(fastest).toBeLessThan(2_000);
    });

    it('is followed by a start that rebuilds the read models if only the log is there', async () => {
      const first = service;
      service = await serviceProcess({ DATA_DIR: copy });
      const after = await ask(`${service.url}/tenants/self`, { key });
      expect(after.json).toEqual(before.json);
      expect(after.json.name).toBe('Kept');
      expect(after.headers.get('etag')).toBe(before.headers.get('etag'));
      expect(service.key).toBe('');
      expect(service.stdout()).not.toContain(first.key);
    });
  });
});

describe('a first start with DEMO=false', () => {
  it('creates no tenant and prints where it serves', async () => {
    const service = await startService({ DEMO: 'false' });
    const { url, folder } = service;
    expect(service.stdout()).toBe(`\ntenant-ledger serves ${url}\nWeb console: ${url}/portal\n\n`);
    expect(await operatorAt(folder).json<unknown>('tenant list')).toEqual([]);
  });
});

const timeToFirstAnswer = async (folder: string, key: string): Promise<number> => {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [PROGRAM, 'serve'], {
    env: { PATH, DATA_DIR: folder, PORT: '0', OPS_PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'close');
  try {
    let printed = '';
    for await (const chunk of child.stdout) {
      printed += String(chunk);
      const url = /serves (http:\S+)\n/.exec(printed)?.[1];
      if (url === undefined) continue;
      expect((await ask(`${url}/tenants/self`, { key })).status).toBe(200);
      return ownTimeMs(child.pid ?? 0, performance.now() - startedAt);
    }
    throw new Error(`It ended without serving: ${printed}`);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
};

describe('a start that fails', () => {
  let other: Server;
  let taken: string;
  beforeAll(async () => {
    other = createServer();
    await once(other.listen(0, '127.0.0.1'), 'listening');
    taken = String((other.address() as AddressInfo).port);
  });
  afterAll(async () => {
    other.close();
    await once(other, 'close');
  });

  const start = (env: Readonly<Record<string, string>>): Promise<Finished> =>
    command(['serve'], { PORT: '0', OPS_PORT: '0', LOG_LEVEL: 'silent', ...env });

  /** One line, no stack trace, nothing that a program could take for data. */
  const expectOneSentence = ({ code, stdout, stderr }: Finished, ...says: readonly string[]): void => {
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^tenant-ledger[^\n]+\n$/);
    for (const text of says) expect(stderr).toContain(text);
  };

  it('says which port is in use', async () => {
    const folder = freshFolder();
    const says = `address already in use 127.0.0.1:${taken}`;
    const code = '[port_unusable]';
    expectOneSentence(await start({ DATA_DIR: folder, PORT: taken }), ` PORT=${taken} cannot`, says, code);
    expectOneSentence(
      await start({ DATA_DIR: folder, OPS_PORT: taken }),
      ` OPS_PORT=${taken} cannot`,
      says,
      code,
    );
    expect(await operatorAt(folder).json<unknown>('tenant list')).toEqual([]);
  });

  it('says that the host is not a local address', async () => {
    const env = { DATA_DIR: freshFolder(), HOST: '192.0.2.1' };
    expectOneSentence(await start(env), 'address not available 192.0.2.1');
  });

  it('says that DATA_DIR is a file, or in one', async () => {
    const file = join(freshFolder(), 'file');
    writeFileSync(file, '');
    // Where Node's recursive mkdir never ends.
    if (existsSync('/proc/self'))
      expectOneSentence(
        await start({ DATA_DIR: '/proc/x/y' }),
        `The folder /proc/x/y cannot be used: ENOENT`,
      );
    expectOneSentence(await start({ DATA_DIR: file }), `The folder ${file} cannot be used: EEXIST`);
    expectOneSentence(
      await start({ DATA_DIR: join(file, 'in') }),
      `The folder ${file}/in cannot be used: ENOTDIR`,
    );
    const folder = freshFolder();
    writeFileSync(join(folder, 'read-models'), '');
    expectOneSentence(await start({ DATA_DIR: folder }), 'read-models');
  });

  it('says that a data file is not ours', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'events.db'), 'x'.repeat(8_192));
    expectOneSentence(await start({ DATA_DIR: folder }), 'events.db', 'not a database');
  });

  it('says that the read models belong to another log, and what to do', async () => {
    const folder = freshFolder();
    const elsewhere = freshFolder();
    for (const one of [folder, elsewhere]) await operatorAt(one).json('tenant create --name A');
    copyFileSync(join(elsewhere, 'events.db'), join(folder, 'events.db'));
    const ended = await start({ DATA_DIR: folder });
    expectOneSentence(
      ended,
      'another event log',
      'tenant-ledger projections rebuild',
      '[read_models_of_another_log]',
    );
  });

  it('says that there are read models but no log, and creates none', async () => {
    const folder = freshFolder();
    await operatorAt(folder).json('tenant create --name A');
    for (const end of ['', '-wal', '-shm']) rmSync(join(folder, `events.db${end}`), { force: true });
    const before = readdirSync(folder, { recursive: true });
    for (const ended of [await start({ DATA_DIR: folder }), await operatorAt(folder).run('tenant list')])
      expectOneSentence(ended, 'read models, but', 'events.db is missing. Restore', '[log_incomplete]');
    expect(readdirSync(folder, { recursive: true })).toEqual(before);
    rmSync(join(folder, 'read-models'), { recursive: true });
    await operatorAt(folder).json('tenant create --name B');
    expect(await operatorAt(folder).json<unknown>('tenant list')).toHaveLength(1);
  });

  const onDisks = whyNoDisks === '' ? it : it.skip;
  const skipped = whyNoDisks === '' ? '' : ` (skipped: ${whyNoDisks})`;

  onDisks(`says that the disk is read-only${skipped}`, () =>
    onDisk('size=4m', async (disk) => {
      const folder = join(disk, 'data');
      await operatorAt(folder, {}, commandProcess).json('tenant create --name A');
      makeReadOnly(disk);
      expectOneSentence(await start({ DATA_DIR: folder }), `The folder ${folder} cannot be used: EROFS`);
      expectOneSentence(await operatorAt(folder).run('tenant list'), 'read-only');
    }),
  );

  /** Sizes at which different steps of the start run out of space. */
  onDisks.each(['8k', '64k', '150k', '260k', '300k'])(
    `says that the disk is full if its size is %s${skipped}`,
    (size) =>
      onDisk(`size=${size}`, async (disk) => {
        expectOneSentence(await start({ DATA_DIR: join(disk, 'data') }), 'full');
      }),
  );

  const executed = async (program: string, options: readonly string[] = [], user = {}): Promise<Finished> => {
    const child = spawn(process.execPath, [...options, program, 'serve'], user);
    const { stderr } = outputsOf(child);
    const [code] = (await once(child, 'close')) as [number];
    return { code, stdout: '', stderr: stderr() };
  };

  it('says that Node is too old', async () => {
    const fake = join(freshFolder(), 'fake.cjs');
    writeFileSync(fake, "Object.defineProperty(process.versions, 'node', { value: '20.18.3' });");
    expectOneSentence(
      await executed(PROGRAM, ['-r', fake]),
      'needs Node 20.19 or newer; this is Node 20.18.3.',
    );
  });

  it('says that the program is not built, or that this user may not read it', async () => {
    const folder = freshFolder();
    chmodSync(folder, 0o755);
    for (const name of ['src', 'dist']) mkdirSync(join(folder, name));
    const program = join(folder, 'src', 'tenant-ledger.cjs');
    copyFileSync(PROGRAM, program);
    expectOneSentence(await executed(program), 'not built', 'npm ci && npm run build');
    chmodSync(join(folder, 'dist'), 0o700);
    if (nobody.uid !== undefined)
      expectOneSentence(await executed(program, [], nobody), 'may not read', 'EACCES');
  });
});
