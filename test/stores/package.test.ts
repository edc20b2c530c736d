import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from '../support/folders';
import { freePort } from '../support/free-port';
import { itIf } from '../support/it-if';
import { nobody, whyNoUsers } from '../support/nobody';
import { outputsOf } from '../support/service';
import { until } from '../support/waiting';

const ROOT = join(__dirname, '..', '..', '..');
const PACKING_MS = 300_000;

describe('the package that npm run package makes', () => {
  const folder = freshFolder();
  const prefix = join(folder, 'installed');
  const program = join(prefix, 'lib', 'node_modules', 'tenant-ledger');
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    npm_config_cache: join(folder, 'cache'),
    npm_config_update_notifier: 'false',
  };
  const npm = (...args: readonly string[]): string =>
    execFileSync('npm', [...args, '--loglevel=error'], { cwd: ROOT, env, encoding: 'utf8' });

  beforeAll(() => {
    chmodSync(folder, 0o755);
    const [{ filename = '' } = {}] = JSON.parse(npm('pack', '--json', '--pack-destination', folder)) as {
      filename?: string;
    }[];
    npm('install', '--global', '--offline', '--prefix', prefix, join(folder, filename));
  }, PACKING_MS);

  it('contains what is built, and no sources, tests or tools', () => {
    const files = readdirSync(program, { recursive: true, encoding: 'utf8' });
    const own = files.filter((file) => !file.startsWith('node_modules'));
    expect(own).toEqual(
      expect.arrayContaining(['dist/src/cli/main.js', 'dist/swagger-ui/LICENSE', 'README.md', 'LICENSE']),
    );
    expect(own.filter((file) => /^dist\/portal\/\w+-\w+\.js$/.test(file))).toHaveLength(1);
    expect(own.filter((file) => /\.(ts|map)$|^dist\/(test|bench)/.test(file))).toEqual([]);
    expect(existsSync(join(program, 'node_modules', 'typescript'))).toBe(false);
    expect(existsSync(join(program, 'node_modules', 'jest'))).toBe(false);
  });

  it('contains the packages that were tested', () => {
    const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string; dev?: boolean; optional?: boolean; peer?: boolean }>;
    };
    const wanted = Object.entries(lock.packages).filter(
      ([name, { dev, optional, peer }]) => name !== '' && !dev && !optional && !peer,
    );
    expect(wanted.length).toBeGreaterThan(100);
    for (const [name, { version }] of wanted) {
      const { version: installed } = JSON.parse(
        readFileSync(join(program, name, 'package.json'), 'utf8'),
      ) as { version: string };
      expect([name, installed]).toEqual([name, version]);
    }
  });

  itIf(whyNoUsers === '', whyNoUsers)('serves for a user who may write only to the data folder', async () => {
    const data = join(folder, 'data');
    mkdirSync(data);
    if (nobody.uid !== undefined) chownSync(data, nobody.uid, nobody.uid);
    const before = readdirSync(program, { recursive: true }).length;
    const [PORT, OPS_PORT] = [await freePort(), await freePort()];
    const child = spawn('tenant-ledger', ['serve'], {
      env: {
        PATH: `${join(prefix, 'bin')}:${env.PATH}`,
        DATA_DIR: join(data, 'ledger'),
        PORT,
        OPS_PORT,
        DEMO: 'false',
      },
      cwd: '/',
      ...nobody,
    });
    const { stdout } = outputsOf(child);
    const ended = new Promise((resolve) => child.once('close', resolve));
    await until(() => stdout().includes('tenant-ledger serves'), 60_000, 'it serves');
    for (const path of ['/openapi.json', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js', '/portal'])
      expect((await fetch(`http://127.0.0.1:${PORT}${path}`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(readdirSync(program, { recursive: true })).toHaveLength(before);
  });
});
