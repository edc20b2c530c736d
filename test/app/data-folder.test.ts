import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { storedSecret } from '../../src/app/data-folder';
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
