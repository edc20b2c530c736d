import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReadModels, ReadModelSet } from '../../src/read-models/read-models';
import { rootsIn } from '../../src/read-models/sqlite/roots';
import { sqliteReadModels, type SqliteOptions } from '../../src/read-models/sqlite/sqlite-read-models';
import * as database from '../../src/sqlite/database';
import { itIf } from '../support/it-if';
import { COLLECTIONS, LOG, ONE, advanceBy, at, delay, note } from './contract/storage';

describe('read models in SQLite', () => {
  let parent: string;
  let folder: string;
  let opened: ReadModels[];
  const open = (options: Partial<SqliteOptions> = {}): ReadModels => {
    const readModels = sqliteReadModels({ folder, version: 'one', collections: COLLECTIONS, ...options });
    opened.push(readModels);
    return readModels;
  };
  const pathOf = ({ id }: Pick<ReadModelSet, 'id'>): string => join(folder, `set-one-${id}.db`);
  const live = async (readModels: ReadModels, former?: ReadModelSet): Promise<ReadModelSet> => {
    const set = await readModels.create(LOG);
    await advanceBy(set, 1, note(ONE, 'a', { text: 'a' }));
    await set.finish();
    expect(await readModels.succeed(set, former)).toBe(true);
    return set;
  };
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), 'sets-'));
    folder = join(parent, 'read-models');
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map((readModels) => readModels.close()));
    rmSync(parent, { recursive: true });
  });

  it('creates nothing before there is a set, and then files for their owner only', async () => {
    const readModels = open();
    expect(await readModels.live()).toBeUndefined();
    expect(await readModels.list()).toEqual([]);
    expect(existsSync(folder)).toBe(false);
    const set = await live(readModels);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(pathOf(set)).mode & 0o777).toBe(0o600);
    expect(statSync(`${pathOf(set)}-wal`).mode & 0o777).toBe(0o600);
  });

  it('syncs a switch, but no other commit of a set', async () => {
    const executed: string[] = [];
    const original = database.openForWriting;
    const spy = jest.spyOn(database, 'openForWriting').mockImplementation((path, synchronous) => {
      if (path.endsWith('root.db')) expect(synchronous).toBe('FULL');
      return new Proxy(original(path, synchronous), {
        get: (db, property) => {
          const value: unknown = Reflect.get(db, property, db);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]): unknown => {
            if (property === 'exec') executed.push(String(args[0]));
            return value.apply(db, args);
          };
        },
      });
    });
    const synced = jest.spyOn(database, 'syncFile');
    try {
      const readModels = open();
      const former = await live(readModels);
      expect(synced.mock.calls).toEqual([[folder], [folder]]);
      executed.length = 0;
      await advanceBy(former, 2);
      expect(executed).toEqual(['BEGIN IMMEDIATE', 'COMMIT']);
      const built = await readModels.create(LOG);
      await advanceBy(built, 2);
      executed.length = 0;
      expect(await readModels.succeed(built, former)).toBe(true);
      expect(executed.slice(0, 6)).toEqual([
        'PRAGMA synchronous = FULL',
        'BEGIN IMMEDIATE',
        'BEGIN IMMEDIATE',
        'COMMIT',
        'PRAGMA synchronous = NORMAL',
        'COMMIT',
      ]);
    } finally {
      spy.mockRestore();
      synced.mockRestore();
    }
  });

  describe('a set that another process has locked', () => {
    const locked = async (set: ReadModelSet, work: (release: () => void) => Promise<void>): Promise<void> => {
      const db = database.openForWriting(pathOf(set), 'NORMAL');
      db.exec('BEGIN IMMEDIATE');
      try {
        await work(() => db.exec('ROLLBACK'));
      } finally {
        db.close();
      }
    };

    it('rejects at once where that is asked for, and can be read meanwhile', async () => {
      await live(open());
      const set = (await open({ busyMs: 0 }).live())?.set as ReadModelSet;
      await advanceBy(set, 2);
      await locked(set, async () => {
        let isLater = false;
        setImmediate(() => (isLater = true));
        const busy = set.advance(new Map(), async () => []);
        await expect(busy).rejects.toMatchObject({ code: 'read_models_busy' });
        expect(isLater).toBe(false);
        expect(await set.get(ONE, 'notes', 'a')).toEqual({ text: 'a' });
      });
      await advanceBy(set, 3);
    });

    it('is waited for otherwise', async () => {
      const set = await live(open());
      await locked(set, async (release) => {
        setTimeout(release, 50);
        await advanceBy(set, 2);
      });
    });

    it('is neither switched from, nor removed', async () => {
      const readModels = open({ busyMs: 20, graceMs: 1 });
      const former = await live(readModels);
      const built = await readModels.create(LOG);
      await advanceBy(built, 2);
      await delay(10);
      await locked(former, async () => {
        await expect(readModels.succeed(built, former)).rejects.toMatchObject({ code: 'read_models_busy' });
      });
      await locked(built, async () => {
        await expect(readModels.remove(built.id)).rejects.toMatchObject({ code: 'read_models_busy' });
      });
      expect(await readModels.succeed(built, former)).toBe(true);
    });
  });

  describe('a live set that certainly does not exist', () => {
    const damages: readonly [string, (path: string) => void][] = [
      ['was deleted', (path) => ['', '-wal', '-shm'].forEach((end) => rmSync(path + end, { force: true }))],
      ['is no database', (path) => writeFileSync(path, 'x'.repeat(8_192))],
      ['is empty', (path) => truncateSync(path)],
    ];

    it.each(damages)('because its file %s, is not found, and another takes its place', async (_, damage) => {
      const set = await live(open());
      await Promise.all(opened.splice(0).map((readModels) => readModels.close()));
      damage(pathOf(set));
      const readModels = open({ graceMs: 1 });
      expect(await readModels.live()).toBeUndefined();
      const next = await live(readModels);
      expect((await open().live())?.set.id).toBe(next.id);
      expect((await readModels.list()).map(({ id }) => id)).toEqual([next.id]);
    });

    it('because damage was found in it while it was read, which nobody else needs to find again', async () => {
      const set = await live(open());
      await Promise.all(opened.splice(0).map((readModels) => readModels.close()));
      const [readModels, other] = [open(), open()];
      expect((await other.live())?.set.id).toBe(set.id);
      const found = (await readModels.live())?.set;
      const file = database.openForWriting(pathOf(set), 'FULL');
      file.exec('DROP TABLE docs_notes');
      file.close();
      await expect(found?.get(ONE, 'notes', 'a')).rejects.toMatchObject({
        code: 'read_models_unavailable',
        more: { isDamaged: true },
      });
      expect([await readModels.live(), await other.live()]).toEqual([undefined, undefined]);
      await expect(advanceBy(set, 1)).rejects.toThrow();
      const next = await live(readModels);
      expect((await other.live())?.set.id).toBe(next.id);
      expect(readdirSync(folder).filter((name) => name.includes(set.id))).toEqual([]);
    });

    it('but leads to its successor, if damage is found in it later', async () => {
      const readModels = open();
      const former = await live(readModels);
      const built = await live(readModels, former);
      const root = database.openForWriting(join(folder, 'root.db'), 'FULL');
      root.exec(`UPDATE roots SET id = '${former.id}'`);
      root.close();
      writeFileSync(`${pathOf(former)}-damaged`, '');
      expect((await open().live())?.set.id).toBe(built.id);
    });

    it('keeps every other set from being removed while it is on the way', async () => {
      const readModels = open({ graceMs: 1 });
      const sets = [await live(readModels)];
      const root = database.openForWriting(join(folder, 'root.db'), 'FULL');
      for (let i = 0; i < 2; i += 1) {
        sets.push(await live(readModels, sets.at(-1)));
        root.exec(`UPDATE roots SET id = '${sets[0]!.id}'`);
      }
      root.close();
      rmSync(pathOf(sets[1]!));
      await delay(20);
      expect(await open({ graceMs: 1 }).remove(sets[2]!.id)).toBe(false);
    });

    it('is noticed by a process that has it open', async () => {
      const readModels = open();
      const set = await live(readModels);
      expect(await set.control()).toMatchObject({ to: at(1) });
      rmSync(pathOf(set));
      await expect(set.control()).rejects.toMatchObject({ code: 'read_model_set_removed' });
      expect(await set.advance(new Map(), async () => [])).toBe('superseded');
      expect(await readModels.live()).toBeUndefined();
    });

    it('is noticed although another file has its name, which is found by the next look', async () => {
      const readModels = open();
      const set = await live(readModels);
      copyFileSync(pathOf(set), join(parent, 'copy'));
      for (const end of ['', '-wal', '-shm']) rmSync(`${pathOf(set)}${end}`, { force: true });
      copyFileSync(join(parent, 'copy'), pathOf(set));
      await expect(set.control()).rejects.toMatchObject({ code: 'read_model_set_removed' });
      expect((await readModels.live())?.set.id).toBe(set.id);
      await advanceBy((await readModels.live())?.set as ReadModelSet, 2);
      expect((await open().live())?.control.to).toEqual(at(2));
    });

    it('is made again if the file of the roots is no database', async () => {
      const readModels = open();
      await live(readModels);
      await readModels.close();
      for (const end of ['-wal', '-shm']) rmSync(join(folder, `root.db${end}`), { force: true });
      writeFileSync(join(folder, 'root.db'), 'x'.repeat(8_192));
      const other = open();
      expect(await other.live()).toBeUndefined();
      const next = await live(other);
      expect((await open().live())?.set.id).toBe(next.id);
    });
  });

  itIf(process.getuid?.() !== 0, 'root may read every file')(
    'a file that cannot be read is an error',
    async () => {
      const set = await live(open());
      await Promise.all(opened.splice(0).map((readModels) => readModels.close()));
      chmodSync(pathOf(set), 0);
      await expect(open().live()).rejects.toMatchObject({ code: 'read_models_unavailable' });
    },
  );

  it('a process that is late does not move the root back along the chain', async () => {
    const readModels = open();
    const sets = [await live(readModels)];
    for (let i = 0; i < 2; i += 1) sets.push(await live(readModels, sets.at(-1)));
    const [first, second, third] = sets.map(({ id }) => id) as [string, string, string];
    const roots = rootsIn(folder);
    expect(roots.all()).toEqual(new Map([['one', third]]));
    expect(roots.move('one', first, second)).toBe(false);
    expect(roots.all()).toEqual(new Map([['one', third]]));
  });

  it('a folder that cannot be used is an error that says where', async () => {
    writeFileSync(folder, 'a file');
    const path = folder;
    await expect(open({ folder: join(path, 'inside') }).create(LOG)).rejects.toMatchObject({
      code: 'read_models_unavailable',
      message: expect.stringContaining(path) as unknown,
    });
  });

  it('what a killed process left of a set is listed, and removed after a minute', async () => {
    const readModels = open();
    const set = await live(readModels);
    const left = { id: '00ff' };
    writeFileSync(pathOf(left), '');
    writeFileSync(join(folder, 'set-one-00fe.db-wal'), '');
    expect(await readModels.list()).toHaveLength(3);
    expect(await readModels.remove(left.id)).toBe(false);
    utimesSync(pathOf(left), new Date(0), new Date(0));
    expect(await readModels.remove(left.id)).toBe(true);
    expect(await readModels.remove('00fe')).toBe(true);
    expect((await readModels.list()).map(({ id }) => id)).toEqual([set.id]);
  });

  it('a removed set leaves no file', async () => {
    const readModels = open({ graceMs: 1 });
    const set = await readModels.create(LOG);
    await advanceBy(set, 1, note(ONE, 'a', {}));
    await delay(10);
    expect(await readModels.remove(set.id)).toBe(true);
    expect(readdirSync(folder).filter((name) => name.includes(set.id))).toEqual([]);
  });
});
