import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
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
});

describe('the data folder of another user', () => {
  const MAIN = join(__dirname, '..', '..', 'src', 'cli', 'main.js');
  const isReadable = spawnSync(process.execPath, [MAIN, '--version'], nobody).status === 0;
  const isPossible = isReadable && nobody.uid !== undefined;

  itIf(isPossible, 'not root, or not for all users')(
    'is refused by every command, which names it and does not take it for an empty one',
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
        expect(stderr).toContain(`The folder ${DATA_DIR} cannot be used: EACCES: permission denied`);
      }
    },
  );
});
