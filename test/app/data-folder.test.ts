import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openToOthers, storedSecret } from '../../src/app/data-folder';
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
});

describe('the data folder of another user', () => {
  const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
  const isReadable = spawnSync(process.execPath, [MAIN, '--version'], nobody).status === 0;
  const isPossible = isReadable && nobody.uid !== undefined;

  itIf(isPossible, 'not root, or not for all users')(
    'is refused by every command, which names its owner',
    () => {
      const parent = freshFolder();
      chmodSync(parent, 0o755);
      const DATA_DIR = join(parent, 'data');
      const run = (line: string, user = {}) =>
        spawnSync(process.execPath, [MAIN, ...line.split(' ')], {
          env: { DATA_DIR },
          encoding: 'utf8',
          ...user,
        });
      expect(run('tenant create --name Acme').status).toBe(0);
      const commands = [
        'status',
        'tenant list',
        'log verify',
        `backup create ${join(parent, 'backup')}`,
        'serve',
      ];
      for (const line of commands) {
        const { status, stderr } = run(line, nobody);
        expect([line, status]).toEqual([line, 1]);
        expect(stderr).toMatch(/by this user\. It belongs to the user root: run this as its owner/);
      }
    },
  );
});

describe('data that other users may read', () => {
  it('is reported whichever file or folder of a service it is in', () => {
    const folder = freshFolder();
    const kept = ['events.db', 'key-uses.db', 'read-models', 'secret', 'snapshots.db'];
    for (const name of kept) writeFileSync(join(folder, name), '');
    const close = (name: string): void => chmodSync(join(folder, name), 0o700);
    for (const name of kept) close(name);
    chmodSync(folder, 0o755);
    expect(openToOthers(folder)).toBeUndefined();
    for (const name of kept) {
      chmodSync(join(folder, name), 0o740);
      expect(openToOthers(folder)).toContain(`(${name})`);
      chmodSync(folder, 0o700);
      expect(openToOthers(folder)).toBeUndefined();
      chmodSync(folder, 0o755);
      close(name);
    }
  });
});
