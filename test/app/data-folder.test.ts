import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { storedSecret } from '../../src/app/data-folder';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { nobody } from '../support/nobody';

describe('the secret stored in the data folder', () => {
  it('is created once, readable by its owner only, and leaves nothing else behind', () => {
    const folder = freshFolder();
    const secret = storedSecret(folder);
    expect(secret.length).toBeGreaterThanOrEqual(32);
    expect(storedSecret(folder)).toBe(secret);
    expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe(secret);
    expect(statSync(join(folder, 'secret')).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['secret']);
  });

  it.each(['', 'short'])('is refused if the file holds %j', (text) => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'secret'), text);
    expect(() => storedSecret(folder)).toThrow(/secret .* is damaged/);
  });

  it('names the folder if the file cannot be created there', () => {
    const folder = join(freshFolder(), 'gone');
    expect(() => storedSecret(folder)).toThrow(`The folder ${folder} cannot be used: ENOENT`);
  });
});

const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
const isReadable = spawnSync(process.execPath, [MAIN, '--version'], nobody).status === 0;
const isPossible = isReadable && nobody.uid !== undefined;

const runIn = (DATA_DIR: string, line: string, user = {}) =>
  spawnSync(process.execPath, [MAIN, ...line.split(' ')], {
    env: { DATA_DIR, PORT: '0', OPS_PORT: '0' },
    encoding: 'utf8',
    ...user,
  });

describe('the data folder of another user', () => {
  itIf(isPossible, 'not root, or not for all users')(
    'is refused by every command, which names it and does not take it for an empty one',
    () => {
      const parent = freshFolder();
      chmodSync(parent, 0o755);
      const DATA_DIR = join(parent, 'data');
      expect(runIn(DATA_DIR, 'tenant create --name Acme').status).toBe(0);
      const commands = [
        'status',
        'tenant list',
        'log verify',
        `backup create ${join(parent, 'backup')}`,
        'serve',
      ];
      for (const line of commands) {
        const { status, stderr } = runIn(DATA_DIR, line, nobody);
        expect([line, status]).toEqual([line, 1]);
        expect(stderr).toContain(`The folder ${DATA_DIR} cannot be used: EACCES: permission denied`);
      }
    },
  );

  itIf(isPossible, 'not root, or not for all users')(
    'is read by root, who leaves no file there that the owner cannot use',
    () => {
      const parent = freshFolder();
      chownSync(parent, nobody.uid ?? 0, nobody.gid ?? 0);
      const [DATA_DIR, empty, backup] = ['data', 'empty', 'backup'].map((name) => join(parent, name)) as [
        string,
        string,
        string,
      ];
      expect(runIn(DATA_DIR, 'tenant create --name Acme', nobody).status).toBe(0);
      expect(runIn(DATA_DIR, `backup create ${backup}`, nobody).status).toBe(0);
      rmSync(join(DATA_DIR, 'read-models'), { recursive: true });
      mkdirSync(empty);
      chownSync(empty, nobody.uid ?? 0, nobody.gid ?? 0);
      for (const [folder, line] of [
        [DATA_DIR, 'tenant list'],
        [DATA_DIR, 'projections rebuild'],
        [DATA_DIR, `backup create ${join(parent, 'other')}`],
        [DATA_DIR, 'serve'],
        [empty, `backup restore ${backup}`],
        [empty, 'tenant create --name Acme'],
      ] as const) {
        const { status, stderr } = runIn(folder, line);
        expect([line, status]).toEqual([line, 1]);
        expect(stderr).toContain(
          `The folder ${folder} cannot be used: it belongs to another user; run this as its owner (uid ${nobody.uid}).`,
        );
      }
      for (const line of ['status', 'log verify', 'audit', 'doctor'])
        expect([line, runIn(DATA_DIR, line).status]).toEqual([line, line === 'doctor' ? 1 : 0]);
      const found = readdirSync(parent, { recursive: true, encoding: 'utf8' });
      expect(found).not.toContain('data/read-models');
      for (const file of found) expect([file, statSync(join(parent, file)).uid]).toEqual([file, nobody.uid]);
    },
  );
});
