import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { sqliteKeyUses } from '../../src/key-uses/sqlite-key-uses';
import { freshFolder } from '../support/folders';
import { refusedWith } from '../support/waiting';
import { keyUsesContract, time } from './contract';

const TENANT = randomUUID();

keyUsesContract('SQLite', async () => {
  const folder = freshFolder();
  return (options) => sqliteKeyUses(folder, options);
});

describe('last uses of keys in a file', () => {
  it('need no file before the first one, and create none', async () => {
    const folder = freshFolder();
    const uses = sqliteKeyUses(folder);
    expect(await uses.lastUses(TENANT)).toEqual(new Map());
    await uses.close();
    expect(existsSync(join(folder, 'key-uses.db'))).toBe(false);
  });

  it('that cannot be written are ignored; a failed read is reported', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'key-uses.db'), 'no database'.repeat(100));
    const uses = sqliteKeyUses(folder);
    uses.used(TENANT, 'a', time(1));
    expect(await refusedWith(uses.lastUses(TENANT))).toBe('data_dir_unusable');
    await uses.close();
  });

  it('are none while the file is being created', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'key-uses.db'), '');
    const uses = sqliteKeyUses(folder);
    expect(await uses.lastUses(TENANT, ['a'])).toEqual(new Map());
    await uses.close();
  });

  it('take one row for each key', async () => {
    const folder = freshFolder();
    for (let round = 0; round < 3; round += 1) {
      const uses = sqliteKeyUses(folder, { periodMs: 0 });
      for (let i = 0; i < 10; i += 1) uses.used(TENANT, `k${i}`, time(round));
      await uses.close();
    }
    const db = new DatabaseSync(join(folder, 'key-uses.db'), { readOnly: true });
    expect(db.prepare('SELECT count(*) AS rows FROM key_uses').get()).toEqual({ rows: 10 });
    db.close();
  });
});
