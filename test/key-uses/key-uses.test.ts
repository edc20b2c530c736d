import { randomUUID } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { pause } from '../../src/clock';
import { sqliteKeyUses, type KeyUsesOptions } from '../../src/key-uses/sqlite-key-uses';
import type { KeyUses } from '../../src/key-uses/key-uses';
import { freshFolder } from '../support/folders';
import { refusedWith } from '../support/waiting';

const [TENANT, OTHER] = [randomUUID(), randomUUID()];
const time = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

describe('last uses of keys', () => {
  const opened: KeyUses[] = [];
  const open = (folder: string, options?: KeyUsesOptions): KeyUses => {
    const uses = sqliteKeyUses(folder, options);
    opened.push(uses);
    return uses;
  };
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  it('are there after the end, for their own tenant only', async () => {
    const folder = freshFolder();
    const uses = open(folder);
    uses.used(TENANT, 'a', time(1));
    uses.used(TENANT, 'b', time(2));
    uses.used(OTHER, 'c', time(3));
    await uses.close();
    const later = open(folder);
    expect(await later.lastUses(TENANT)).toEqual(
      new Map([
        ['a', time(1)],
        ['b', time(2)],
      ]),
    );
    expect(await later.lastUses(OTHER)).toEqual(new Map([['c', time(3)]]));
    expect(await later.lastUses(randomUUID())).toEqual(new Map());
  });

  it('are written at most once in a period for each key', async () => {
    const folder = freshFolder();
    const uses = open(folder, { periodMs: 60_000 });
    for (let second = 0; second < 50; second += 1) uses.used(TENANT, 'a', time(second));
    await uses.close();
    expect((await open(folder).lastUses(TENANT)).get('a')).toBe(time(0));
    const often = open(folder, { periodMs: 0 });
    for (let second = 0; second < 50; second += 1) often.used(TENANT, 'a', time(second));
    await often.close();
    expect((await open(folder).lastUses(TENANT)).get('a')).toBe(time(49));
  });

  it('are written while the process goes on', async () => {
    const folder = freshFolder();
    open(folder).used(TENANT, 'a', time(1));
    const reader = open(folder);
    const end = Date.now() + 10_000;
    while ((await reader.lastUses(TENANT).catch(() => new Map())).size === 0 && Date.now() < end)
      await pause(20);
    expect((await reader.lastUses(TENANT)).get('a')).toBe(time(1));
  });

  it('of several processes: the latest one counts', async () => {
    const folder = freshFolder();
    for (const second of [5, 3]) {
      const uses = open(folder);
      uses.used(TENANT, 'a', time(second));
      await uses.close();
    }
    expect((await open(folder).lastUses(TENANT)).get('a')).toBe(time(5));
  });

  it('take no more memory than so many keys', async () => {
    const folder = freshFolder();
    const uses = open(folder, { mostKeys: 2 });
    for (const keyId of ['a', 'b', 'c', 'a']) uses.used(TENANT, keyId, time(keyId === 'a' ? 9 : 1));
    await uses.close();
    expect((await open(folder).lastUses(TENANT)).size).toBe(3);
  });

  it('need no file before the first one, and make none', async () => {
    const folder = freshFolder();
    expect(await open(folder).lastUses(TENANT)).toEqual(new Map());
    expect(existsSync(join(folder, 'key-uses.db'))).toBe(false);
  });

  it('that cannot be written disturb nobody; that cannot be read are told', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'key-uses.db'), 'no database'.repeat(100));
    const uses = open(folder);
    uses.used(TENANT, 'a', time(1));
    expect(await refusedWith(uses.lastUses(TENANT))).toBe('data_dir_unusable');
    await uses.close();
  });

  it('are one row for each key', async () => {
    const folder = freshFolder();
    for (let round = 0; round < 3; round += 1) {
      const uses = open(folder, { periodMs: 0 });
      for (let i = 0; i < 10; i += 1) uses.used(TENANT, `k${i}`, time(round));
      await uses.close();
    }
    const db = new DatabaseSync(join(folder, 'key-uses.db'), { readOnly: true });
    expect(db.prepare('SELECT count(*) AS rows FROM key_uses').get()).toEqual({ rows: 10 });
    db.close();
  });
});
