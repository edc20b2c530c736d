import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openToOthers, storedSecret } from '../../src/app/data-folder';
import { folderOfRelease010 } from '../support/earlier-folder';
import { freshFolder } from '../support/folders';

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

describe('data that other users may read', () => {
  it('is reported whichever file or folder of a service it is in', () => {
    const folder = folderOfRelease010();
    const kept = readdirSync(folder);
    expect(kept.toSorted()).toEqual(['events.db', 'key-uses.db', 'read-models', 'secret', 'snapshots.db']);
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
