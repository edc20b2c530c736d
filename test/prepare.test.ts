import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { freshFolder } from './support/folders';
import { itIf } from './support/it-if';
import { nobody, whyNoUsers } from './support/nobody';
import { until } from './support/waiting';

const ROOT = join(__dirname, '..', '..');

/** A clone with a single source file, the packages installed here, and an `npm` that only records its calls. */
const clone = () => {
  const folder = realpathSync(freshFolder());
  const at = (...names: readonly string[]): string => join(folder, ...names);
  mkdirSync(at('src'));
  mkdirSync(at('bin'));
  for (const file of ['package.json', 'package-lock.json', 'tsconfig.build.json'])
    copyFileSync(join(ROOT, file), at(file));
  // The source needs no types of packages, which take most of the time of a build.
  const tsconfig = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')) as {
    compilerOptions: object;
  };
  Object.assign(tsconfig.compilerOptions, { types: [] });
  writeFileSync(at('tsconfig.json'), JSON.stringify(tsconfig));
  for (const file of ['prepare.cjs', 'prepare-lock.cjs', 'tenant-ledger.cjs'])
    copyFileSync(join(ROOT, 'src', file), at('src', file));
  symlinkSync(join(ROOT, 'node_modules'), at('node_modules'));
  mkdirSync(at('portal'));
  copyFileSync(join(ROOT, 'portal', 'tsconfig.json'), at('portal', 'tsconfig.json'));
  writeFileSync(at('portal', 'main.ts'), 'export const page = 1;\n');
  writeFileSync(at('portal', 'portal.css'), 'body {}\n');
  writeFileSync(at('src', 'one.ts'), 'export const one: number = 1;\n');
  writeFileSync(at('bin', 'npm'), `#!/bin/sh\necho "$@" >> '${at('npm-calls')}'\nexit $NPM_ENDS\n`);
  chmodSync(at('bin', 'npm'), 0o755);
  const PATH = `${at('bin')}:${process.env['PATH'] ?? ''}`;

  return {
    at,
    build: () => {
      const args = [at('src', 'prepare.cjs'), 'build'];
      const { status, stdout, stderr } = spawnSync(process.execPath, args, {
        env: { PATH, NPM_ENDS: '0' },
        encoding: 'utf8',
      });
      return { status, stdout, stderr };
    },
    prepare: (npmEnds = '0', more: Readonly<Record<string, string>> = {}) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [at('src', 'prepare.cjs')], {
        env: { PATH, NPM_ENDS: npmEnds, ...more },
        encoding: 'utf8',
      });
      return { status, stdout, stderr };
    },
    start: () => {
      const child = spawn(process.execPath, [at('src', 'prepare.cjs')], { env: { PATH, NPM_ENDS: '0' } });
      let stderr = '';
      child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
      return { child, stderr: () => stderr, ended: once(child, 'close').then(([code]) => code as number) };
    },
    /** Waits until there is a file `go`; then the missing package is there. */
    npmTakesLong: () => {
      const wait = `while [ ! -e '${at('go')}' ]; do sleep 0.1; done`;
      const lines = [
        '#!/bin/sh',
        `echo "$@" >> '${at('npm-calls')}'`,
        `echo $$ > '${at('npm-pid.new')}'; mv '${at('npm-pid.new')}' '${at('npm-pid')}'`,
        wait,
        `cp '${join(ROOT, 'package-lock.json')}' '${at('package-lock.json')}'`,
      ];
      writeFileSync(at('bin', 'npm'), `${lines.join('\n')}\n`);
    },
    wantNoMore: () => copyFileSync(join(ROOT, 'package-lock.json'), at('package-lock.json')),
    prepareBeside: async (): Promise<number | null> => {
      const [code] = (await once(spawn(process.execPath, [at('src', 'prepare.cjs')]), 'close')) as [number];
      return code;
    },
    built: () =>
      execFileSync(process.execPath, ['-p', `require('${at('dist', 'src', 'one.js')}').one`]).toString(),
    npmCalls: () => (existsSync(at('npm-calls')) ? readFileSync(at('npm-calls'), 'utf8') : ''),
    /** Makes the lockfile require a package that is not installed. */
    wantMore: (kind: 'dev' | 'always' = 'always') => {
      const lock = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')) as { packages: object };
      const entry = { version: '1.0.0', ...(kind === 'dev' ? { dev: true } : {}) };
      Object.assign(lock.packages, { 'node_modules/brand-new': entry });
      writeFileSync(at('package-lock.json'), JSON.stringify(lock));
    },
  };
};

/** Builds as a user who may only read. */
const withoutRights = (folder: string) => {
  const args = [join(folder, 'src', 'prepare.cjs'), 'build'];
  chmodSync(folder, 0o555);
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    env: {},
    encoding: 'utf8',
    ...nobody,
  });
  chmodSync(folder, 0o755);
  return { status, stdout, stderr };
};

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const BUILDING_TEXT = 'Building …\nBuilding the portal …\n';
const BUILDING = { status: 0, stdout: '', stderr: BUILDING_TEXT };
const NOTHING = { status: 0, stdout: '', stderr: '' };

describe('preparing a clone', () => {
  it('builds at first, and then only what has changed; what was built from a removed source is deleted', () => {
    const { at, prepare, built } = clone();
    writeFileSync(at('src', 'two.ts'), 'export const two = 2;\n');
    expect(prepare()).toEqual(BUILDING);
    expect(built()).toBe('1\n');
    for (const file of ['main.js', 'portal.css', 'vendor/preact.js', 'vendor/signals.js'])
      expect([file, existsSync(at('dist', 'portal', file))]).toEqual([file, true]);
    expect(existsSync(at('dist', 'src', 'two.js'))).toBe(true);
    const before = statSync(at('dist', 'src', 'one.js')).mtimeMs;
    expect(prepare()).toEqual(NOTHING);
    expect(statSync(at('dist', 'src', 'one.js')).mtimeMs).toBe(before);
    writeFileSync(at('src', 'one.ts'), 'export const one: number = 2;\n');
    rmSync(at('src', 'two.ts'));
    expect(prepare()).toEqual(BUILDING);
    expect(built()).toBe('2\n');
    expect(existsSync(at('dist', 'src', 'two.js'))).toBe(false);
  });

  it('exits with 1 if it cannot build, leaves the last good build in place, and tries again the next time', () => {
    const { at, prepare, built } = clone();
    prepare();
    writeFileSync(at('src', 'one.ts'), 'export const one: number = "broken";\n');
    for (const turn of [1, 2]) {
      const { status, stderr } = prepare();
      expect({ turn, status }).toEqual({ turn, status: 1 });
      expect(stderr).toContain('src/one.ts(1,14): error');
      expect(stderr).toContain('failed; see the lines above.');
      expect(built()).toBe('1\n');
    }
    writeFileSync(at('src', 'one.ts'), 'export const one: number = 3;\n');
    expect(prepare()).toEqual(BUILDING);
    expect(built()).toBe('3\n');
  });

  it('builds again for another version of a library that the portal serves', () => {
    const { at, prepare } = clone();
    prepare();
    const lock = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string }>;
    };
    lock.packages['node_modules/preact'] = { version: '1.0.0' };
    writeFileSync(at('package-lock.json'), JSON.stringify(lock));
    expect(prepare().stderr).toBe(`Installing what is missing (npm ci) …\n${BUILDING_TEXT}`);
  });

  it('can be run several times at once, and leaves nothing but the build', async () => {
    const { at, prepareBeside, built } = clone();
    const before = readdirSync(at());
    expect(await Promise.all([prepareBeside(), prepareBeside(), prepareBeside()])).toEqual([0, 0, 0]);
    expect(built()).toBe('1\n');
    expect(readdirSync(at()).filter((name) => !before.includes(name))).toEqual(['dist']);
  });

  it('installs from the lockfile only when a package is missing, with tools even if NODE_ENV=production would omit them', () => {
    const { prepare, npmCalls, wantMore } = clone();
    prepare();
    expect(npmCalls()).toBe('');
    wantMore();
    expect(prepare('0', { NODE_ENV: 'production' })).toMatchObject({
      status: 0,
      stderr: 'Installing what is missing (npm ci) …\n',
    });
    expect(npmCalls()).toMatch(/^ci --include=dev [^\n]*\n$/);
  });

  it('for running installs no test tools and builds no tests; for the tests it builds those as well', () => {
    const { at, prepare, npmCalls, wantMore } = clone();
    copyFileSync(join(ROOT, 'tsconfig.json'), at('tsconfig.json'));
    mkdirSync(at('src', 'cli'));
    mkdirSync(at('test'));
    writeFileSync(at('src', 'cli', 'main.ts'), 'export const main = (): void => console.log("runs");\n');
    writeFileSync(at('test', 'some.test.ts'), 'it("is a test", () => undefined);\n');
    const run = () =>
      spawnSync(process.execPath, [at('src', 'tenant-ledger.cjs')], {
        env: { PATH: `${at('bin')}:${process.env['PATH'] ?? ''}`, NPM_ENDS: '0' },
        encoding: 'utf8',
      });
    expect(run()).toMatchObject({ status: 0, stdout: 'runs\n', stderr: BUILDING_TEXT });
    expect(existsSync(at('dist', 'test'))).toBe(false);
    expect(run()).toMatchObject({ status: 0, stderr: '' });
    expect(prepare()).toMatchObject({ status: 0, stderr: BUILDING_TEXT });
    expect(existsSync(at('dist', 'test', 'some.test.js'))).toBe(true);
    expect(run()).toMatchObject({ status: 0, stdout: 'runs\n', stderr: '' });
    wantMore('dev');
    expect(run()).toMatchObject({ status: 0, stdout: 'runs\n', stderr: '' });
    expect(npmCalls()).toBe('');
    writeFileSync(at('src', 'one.ts'), 'export const one: number = 2;\n');
    run();
    expect(npmCalls()).toMatch(/^ci --include=dev /);
  });

  it('builds only the program when told so, and takes a copy of what is built as built, though its files have other times', () => {
    const { at, build } = clone();
    mkdirSync(at('test'));
    writeFileSync(at('test', 'some.test.ts'), 'export const two = 2;\n');
    expect(build()).toEqual(BUILDING);
    expect(readdirSync(at('dist')).filter((name) => !name.startsWith('.'))).toEqual(['portal', 'src']);
    expect(build()).toEqual(NOTHING);
    utimesSync(at('src', 'one.ts'), new Date(), new Date());
    expect(build()).toEqual(NOTHING);
  });

  it('has nothing to prepare in an installed package, which has no sources', () => {
    const { at, build, npmCalls, wantMore } = clone();
    for (const name of ['tsconfig.json', 'tsconfig.build.json', join('src', 'one.ts')]) rmSync(at(name));
    wantMore();
    expect(build()).toEqual(NOTHING);
    expect(npmCalls()).toBe('');
  });

  itIf(whyNoUsers === '', whyNoUsers)(
    'starts what is built, or says how to build it, without write access',
    () => {
      const { at, build, wantMore } = clone();
      const ofOther = () => withoutRights(at());
      const advice = 'and this user may not write there. As the owner of the folder, run: npm run build\n';
      expect(ofOther()).toEqual({
        status: 1,
        stdout: '',
        stderr: `tenant-ledger: the program in ${at()} is not built, ${advice}`,
      });
      build();
      expect(ofOther()).toEqual(NOTHING);
      wantMore();
      expect(ofOther()).toEqual({
        status: 1,
        stdout: '',
        stderr: `tenant-ledger: packages are missing in ${at()}, ${advice}`,
      });
    },
  );

  it('leaves nothing behind when it is interrupted while it builds, or was killed before', async () => {
    const { at, start, prepare } = clone();
    mkdirSync(at('.dist-4711'));
    const before = readdirSync(at()).filter((name) => name !== '.dist-4711');
    const preparing = start();
    await until(() => preparing.stderr() === 'Building …\n', 20_000, 'it builds');
    preparing.child.kill('SIGINT');
    expect(await preparing.ended).toBe(130);
    expect(preparing.stderr()).toContain('interrupted; the next start begins this step again.');
    expect(readdirSync(at())).toEqual(before);
    expect(prepare()).toEqual(BUILDING);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'also ends an installation when it is ended by %s',
    async (signal) => {
      const { at, prepare, start, npmTakesLong, wantMore, wantNoMore } = clone();
      wantMore();
      npmTakesLong();
      const preparing = start();
      await until(() => existsSync(at('npm-pid')), 20_000, 'npm runs');
      const npm = Number(readFileSync(at('npm-pid'), 'utf8'));
      expect(isRunning(npm)).toBe(true);
      preparing.child.kill(signal);
      expect(await preparing.ended).toBe(128 + constants.signals[signal]);
      expect(preparing.stderr()).toContain('interrupted; the next start begins this step again.');
      await until(() => !isRunning(npm), 10_000, 'npm is gone');
      expect(readdirSync(at()).filter((name) => name.startsWith('.'))).toEqual([]);
      wantNoMore();
      expect(prepare()).toEqual(BUILDING);
    },
  );

  it('installs once if it is started twice at the same time: one waits for the other', async () => {
    const { at, start, npmTakesLong, npmCalls, wantMore, built } = clone();
    wantMore();
    npmTakesLong();
    const first = start();
    await until(() => existsSync(at('npm-pid')), 20_000, 'npm runs');
    const second = start();
    const sentence = `Process ${first.child.pid} is installing or building here already; waiting for it …\n`;
    await until(() => second.stderr() !== '', 20_000, 'the second one waits');
    writeFileSync(at('go'), '');
    expect(await Promise.all([first.ended, second.ended])).toEqual([0, 0]);
    expect(second.stderr()).toBe(sentence);
    expect(npmCalls().trim().split('\n')).toHaveLength(1);
    expect(built()).toBe('1\n');
  });

  it.each([
    ['a process that is gone', () => spawnSync(process.execPath, ['-e', '']).pid, new Date()],
    ['a process that does not renew it', () => process.pid, new Date(Date.now() - 60_000)],
  ])('ignores the lock of %s', (_, pid, at) => {
    const repository = clone();
    writeFileSync(repository.at('.preparing'), String(pid()));
    utimesSync(repository.at('.preparing'), at, at);
    expect(repository.prepare()).toEqual(BUILDING);
    expect(existsSync(repository.at('.preparing'))).toBe(false);
  });

  it('leaves the lock to the process that took it over', async () => {
    const { at, npmTakesLong, wantMore, start } = clone();
    wantMore();
    npmTakesLong();
    const { ended } = start();
    await until(() => existsSync(at('npm-pid')), 20_000, 'npm runs');
    writeFileSync(at('.preparing'), String(process.pid));
    writeFileSync(at('go'), '');
    expect(await ended).toBe(0);
    expect(readFileSync(at('.preparing'), 'utf8')).toBe(String(process.pid));
  });

  it('exits with 1 if it cannot install', () => {
    const { prepare, wantMore, at } = clone();
    wantMore();
    const { status, stderr } = prepare('7');
    expect(status).toBe(1);
    expect(stderr).toContain(
      '"npm ci --include=dev --no-audit --no-fund --loglevel=error" failed; see the lines above.',
    );
    expect(existsSync(at('dist'))).toBe(false);
  });
});
