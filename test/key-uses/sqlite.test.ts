import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { sqliteKeyUses } from '../../src/key-uses/sqlite-key-uses';
import { fileDamages } from '../support/damage';
import { freshFolder } from '../support/folders';
import { refusedWith, until } from '../support/waiting';
import { keyUsesContract, request, time } from './contract';

const TENANT = randomUUID();

keyUsesContract('SQLite', async () => {
  const folder = freshFolder();
  return (options) => sqliteKeyUses(folder, options);
});

describe('uses of keys in a file', () => {
  it('need no file before the first one, and create none', async () => {
    const folder = freshFolder();
    const uses = sqliteKeyUses(folder);
    expect(await uses.lastUses(TENANT)).toEqual(new Map());
    await uses.close();
    expect(existsSync(join(folder, 'key-uses.db'))).toBe(false);
  });

  it.each(['used', 'lastUses'] as const)(
    'in a damaged file are lost: %s finds it, sets it aside and reports it once',
    async (first) => {
      const folder = freshFolder();
      const path = join(folder, 'key-uses.db');
      writeFileSync(path, 'no database'.repeat(100));
      const warnings: string[] = [];
      const uses = sqliteKeyUses(folder, { report: (what) => void warnings.push(what) });
      if (first === 'lastUses') expect(await uses.lastUses(TENANT)).toEqual(new Map());
      uses.used(request(TENANT, 'a', time(1)));
      await until(() => existsSync(`${path}.damaged`));
      await until(async () => (await uses.lastUses(TENANT)).size === 1);
      expect(warnings).toEqual([expect.stringContaining(`${path}.damaged`)]);
      await uses.close();
    },
  );

  it.each(Object.keys(fileDamages))(
    'in a file that was %s while nobody had it open are lost, and recorded again',
    async (how) => {
      const [whole, folder] = [freshFolder(), freshFolder()];
      const path = join(folder, 'key-uses.db');
      const first = sqliteKeyUses(whole);
      first.used(request(TENANT, 'a', time(1)));
      await first.close();
      // A copy: this process may still have the file open, until what used it is garbage-collected.
      copyFileSync(join(whole, 'key-uses.db'), path);
      fileDamages[how]?.(path, 'key_uses');
      const warnings: string[] = [];
      const uses = sqliteKeyUses(folder, { periodMs: 0, report: (what) => void warnings.push(what) });
      await until(async () => {
        uses.used(request(TENANT, 'b', time(2)));
        return (await uses.lastUses(TENANT, ['b'])).size === 1;
      });
      await uses.close();
      // A file that is missing or empty is simply created.
      expect(warnings).toHaveLength(existsSync(`${path}.damaged`) ? 1 : 0);
      const db = new DatabaseSync(path);
      expect(db.prepare('PRAGMA quick_check').all()).toEqual([{ quick_check: 'ok' }]);
      db.close();
    },
  );

  it('in a file that is deleted or damaged later are lost, and recorded again', async () => {
    const folder = freshFolder();
    const path = join(folder, 'key-uses.db');
    const warnings: string[] = [];
    const uses = sqliteKeyUses(folder, { periodMs: 0, report: (what) => void warnings.push(what) });
    const isKnown = (key: string) => async () => (await uses.lastUses(TENANT, [key])).size === 1;
    uses.used(request(TENANT, 'a', time(1)));
    await until(isKnown('a'));
    for (const ending of ['', '-wal', '-shm']) rmSync(`${path}${ending}`, { force: true });
    uses.used(request(TENANT, 'b', time(2)));
    await until(isKnown('b'));
    expect(await uses.lastUses(TENANT)).toEqual(new Map([['b', time(2)]]));
    expect(warnings).toEqual([]);
    const db = new DatabaseSync(path);
    db.exec('DROP TABLE key_uses');
    db.close();
    uses.used(request(TENANT, 'c', time(3)));
    await until(isKnown('c'));
    expect(warnings).toHaveLength(1);
    await uses.close();
  });

  it('that cannot be read for another reason are reported', async () => {
    const folder = freshFolder();
    mkdirSync(join(folder, 'key-uses.db'));
    const uses = sqliteKeyUses(folder);
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
      for (let i = 0; i < 10; i += 1) uses.used(request(TENANT, `k${i}`, time(round)));
      await uses.close();
    }
    const db = new DatabaseSync(join(folder, 'key-uses.db'), { readOnly: true });
    expect(db.prepare('SELECT count(*) AS rows FROM key_uses').get()).toEqual({ rows: 10 });
    expect(db.prepare('SELECT count(*) AS rows FROM key_days').get()).toEqual({ rows: 10 });
    db.close();
  });
});
