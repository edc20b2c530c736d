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
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { freshFolder } from './support/folders';

const ROOT = join(__dirname, '..', '..');

/** A clone with one source of its own, the installed packages of this one, and an `npm` that only takes notes. */
const clone = () => {
  const folder = realpathSync(freshFolder());
  const at = (...names: readonly string[]): string => join(folder, ...names);
  mkdirSync(at('src'));
  mkdirSync(at('bin'));
  for (const file of ['package.json', 'package-lock.json', 'tsconfig.json', join('src', 'prepare.cjs')])
    copyFileSync(join(ROOT, file), at(file));
  symlinkSync(join(ROOT, 'node_modules'), at('node_modules'));
  writeFileSync(at('src', 'one.ts'), 'export const one: number = 1;\n');
  writeFileSync(at('bin', 'npm'), `#!/bin/sh\necho "$@" >> '${at('npm-calls')}'\nexit $NPM_ENDS\n`);
  chmodSync(at('bin', 'npm'), 0o755);

  return {
    at,
    prepare: (npmEnds = '0') => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [at('src', 'prepare.cjs')], {
        env: { PATH: `${at('bin')}:${process.env['PATH'] ?? ''}`, NPM_ENDS: npmEnds },
        encoding: 'utf8',
      });
      return { status, stdout, stderr };
    },
    prepareBeside: async (): Promise<number | null> => {
      const [code] = (await once(spawn(process.execPath, [at('src', 'prepare.cjs')]), 'close')) as [number];
      return code;
    },
    built: () =>
      execFileSync(process.execPath, ['-p', `require('${at('dist', 'src', 'one.js')}').one`]).toString(),
    npmCalls: () => (existsSync(at('npm-calls')) ? readFileSync(at('npm-calls'), 'utf8') : ''),
    /** The lockfile wants a package that is not installed. */
    wantMore: () => {
      const lock = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')) as { packages: object };
      Object.assign(lock.packages, { 'node_modules/brand-new': { version: '1.0.0' } });
      writeFileSync(at('package-lock.json'), JSON.stringify(lock));
    },
  };
};

const BUILDING = { status: 0, stdout: '', stderr: 'Building …\n' };
const NOTHING = { status: 0, stdout: '', stderr: '' };

describe('preparing a clone', () => {
  it('builds at first, and then only what has changed', () => {
    const { at, prepare, built } = clone();
    expect(prepare()).toEqual(BUILDING);
    expect(built()).toBe('1\n');
    const before = statSync(at('dist', 'src', 'one.js')).mtimeMs;
    expect(prepare()).toEqual(NOTHING);
    expect(statSync(at('dist', 'src', 'one.js')).mtimeMs).toBe(before);
    writeFileSync(at('src', 'one.ts'), 'export const one: number = 2;\n');
    expect(prepare()).toEqual(BUILDING);
    expect(built()).toBe('2\n');
  });

  it('forgets what was built from a source that is gone', () => {
    const { at, prepare } = clone();
    writeFileSync(at('src', 'two.ts'), 'export const two = 2;\n');
    prepare();
    expect(existsSync(at('dist', 'src', 'two.js'))).toBe(true);
    rmSync(at('src', 'two.ts'));
    expect(prepare()).toEqual(BUILDING);
    expect(existsSync(at('dist', 'src', 'two.js'))).toBe(false);
  });

  it('ends with 1 when it cannot build, and tries again the next time', () => {
    const { at, prepare, built } = clone();
    writeFileSync(at('src', 'one.ts'), 'export const one: number = "1";\n');
    for (const turn of [1, 2]) {
      const { status, stderr } = prepare();
      expect({ turn, status }).toEqual({ turn, status: 1 });
      expect(stderr).toContain('src/one.ts(1,14): error');
      expect(stderr).toContain('failed; see the lines above.');
    }
    writeFileSync(at('src', 'one.ts'), 'export const one: number = 1;\n');
    expect(prepare()).toEqual(BUILDING);
    expect(built()).toBe('1\n');
  });

  it('leaves the last good build in place until the next one is whole', () => {
    const { at, prepare, built } = clone();
    prepare();
    writeFileSync(at('src', 'one.ts'), 'export const one: number = "broken";\n');
    expect(prepare().status).toBe(1);
    expect(built()).toBe('1\n');
  });

  it('may be run several times at once, and leaves nothing but the build', async () => {
    const { at, prepareBeside, built } = clone();
    const before = readdirSync(at());
    expect(await Promise.all([prepareBeside(), prepareBeside(), prepareBeside()])).toEqual([0, 0, 0]);
    expect(built()).toBe('1\n');
    expect(readdirSync(at()).filter((name) => !before.includes(name))).toEqual(['dist']);
  });

  it('installs from the lockfile only when a package is missing', () => {
    const { prepare, npmCalls, wantMore } = clone();
    prepare();
    expect(npmCalls()).toBe('');
    wantMore();
    expect(prepare()).toMatchObject({ status: 0, stderr: 'Installing what is missing (npm ci) …\n' });
    expect(npmCalls()).toMatch(/^ci [^\n]*\n$/);
  });

  it('ends with 1 when it cannot install', () => {
    const { prepare, wantMore, at } = clone();
    wantMore();
    const { status, stderr } = prepare('7');
    expect(status).toBe(1);
    expect(stderr).toContain('"npm ci --no-audit --no-fund --loglevel=error" failed; see the lines above.');
    expect(existsSync(at('dist'))).toBe(false);
  });
});
