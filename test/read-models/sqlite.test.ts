import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { generationName, type ReadModels, type Write } from '../../src/read-models/read-models';
import { sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { openForReading, openForWriting } from '../../src/sqlite/database';
import { startThread } from '../../src/sqlite/thread';
import { countedFailure } from '../support/counted-failure';
import { fileDamages } from '../support/damage';
import { freshFolder } from '../support/folders';
import { inThreadWriter } from '../support/in-thread-writer';
import { until } from '../support/waiting';
import { readModelsContract } from './contract/contract';
import type { FailingWriterData } from './failing-writer-thread';

readModelsContract('SQLite', async () => {
  const folder = freshFolder();
  const { onWrite, ...injection } = countedFailure();
  const startWriter = inThreadWriter({ onWrite });
  const open = () => sqliteReadModels(folder, { startWriter });
  const openWithin = (maxCommitBytes: number) =>
    sqliteReadModels(freshFolder(), { startWriter, maxCommitBytes });
  return { readModels: await open(), reopen: open, openWithin, ...injection };
});

describe('read models in SQLite files', () => {
  const id = { projection: 'counter', version: 1, generation: 1 };
  const collections = [{ name: 'counts', indexes: {} }];
  const count = (key: string, n: number): Write => ({
    tenantId: 'tenant',
    collection: 'counts',
    key,
    document: { count: n },
  });

  const children: ChildProcess[] = [];
  const opened: ReadModels[] = [];
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const readModels of opened.splice(0)) await readModels.close();
  });

  const openIn: typeof sqliteReadModels = async (...parts) => {
    const readModels = await sqliteReadModels(...parts);
    opened.push(readModels);
    return readModels;
  };

  /** Starts a child and waits for its first line. */
  const child = async (...args: string[]) => {
    const started = spawn(process.execPath, [join(__dirname, 'other-process.js'), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(started);
    const ended = once(started, 'exit');
    const [line] = (await once(started.stdout, 'data')) as [Buffer];
    return { process: started, line: line.toString().trim(), ended };
  };

  it('count one write point for each document, for the control state and for the end', async () => {
    const { onWrite, reached } = countedFailure();
    const readModels = await openIn(freshFolder(), { startWriter: inThreadWriter({ onWrite }) });
    const generation = await readModels.open(id, collections, 'log');
    await generation.commit(0, undefined, [
      count('a', 1),
      count('b', 1),
      { ...count('c', 1), document: undefined },
    ]);
    expect(reached()).toBe(3 + 2);
  });

  it('close a generation that nobody uses or points at, and reopen it at its next use', async () => {
    const requests: string[] = [];
    const startWriter = inThreadWriter({ onAnswer: (what) => requests.push(what) });
    const readModels = await openIn(freshFolder(), { startWriter, idleMs: 40 });
    const unused = await readModels.open(id, collections, 'log');
    const live = await readModels.open({ ...id, generation: 2 }, collections, 'log');
    await readModels.point(id.projection, id.version, { live: 2 }, undefined);
    for (const generation of [unused, live]) await generation.commit(0, undefined, [count('a', 1)]);
    /** The token of a reopened file is far beyond those before. */
    const openings = () =>
      [unused, live].map(({ reader }) => Math.floor((reader.changeToken?.() ?? 0) / 2 ** 32));
    expect(openings()).toEqual([1, 1]);
    await until(() => requests.includes('close'));
    expect(openings()).toEqual([2, 1]);
    expect(await unused.reader.get('tenant', 'counts', 'a')).toEqual({ count: 1 });
    await until(() => requests.at(-1) === 'close');
    expect(await unused.commit(1, undefined, [count('a', 2)])).toBe(true);
    expect(await unused.reader.get('tenant', 'counts', 'a')).toEqual({ count: 2 });
    expect(requests.filter((what) => what === 'open')).toHaveLength(3);
  });

  it('work after the writer thread died in the middle of a commit, at any write point', async () => {
    const writes = [count('a', 2), count('b', 2)];
    const points = writes.length + 2;
    const left = new Int32Array(new SharedArrayBuffer(4));
    const startWriter = (folder: string) =>
      startThread(join(__dirname, 'failing-writer-thread.js'), { folder, left } satisfies FailingWriterData);
    const readModels = await openIn(freshFolder(), { startWriter });
    const generation = await readModels.open(id, collections, 'log');
    await generation.commit(0, undefined, [count('a', 1), count('b', 1)]);
    const before = await generation.scan('counts', 9);
    for (let k = 1; k <= points; k++) {
      const { n } = await generation.control();
      Atomics.store(left, 0, k);
      await expect(generation.commit(n, undefined, writes)).rejects.toMatchObject({
        code: 'read_models_unavailable',
        more: { cause: 'no_answer' },
      });
      expect(Atomics.load(left, 0)).toBe(0);
      expect((await generation.control()).n).toBe(n);
      expect(await generation.scan('counts', 9)).toEqual(before);
      expect(await generation.commit(n, undefined, [])).toBe(true);
    }
    expect(await generation.commit((await generation.control()).n, undefined, writes)).toBe(true);
    expect(await generation.reader.get('tenant', 'counts', 'b')).toEqual({ count: 2 });
  });

  it('are shared by processes: every commit counts once', async () => {
    const folder = freshFolder();
    const times = 100;
    const both = await Promise.all([
      child('commit', folder, String(times)),
      child('commit', folder, String(times)),
    ]);
    const readModels = await openIn(folder);
    const generation = await readModels.open(id, collections, 'log');
    for (const { ended } of both) expect(await ended).toEqual([0, null]);
    expect((await generation.control()).n).toBe(2 * times);
    expect(await generation.reader.get('tenant', 'counts', 'all')).toEqual({ count: 2 * times });
  });

  it('can be opened for the first time by many threads at once', async () => {
    for (let round = 0; round < 3; round++) {
      const folder = freshFolder();
      const all = await Promise.all([1, 2, 3, 4].map(() => openIn(folder)));
      const generations = await Promise.all(all.map((models) => models.open(id, collections, 'log')));
      expect(await generations[0]?.commit(0, undefined, [count('a', 1)])).toBe(true);
      for (const generation of generations)
        expect(await generation.reader.get('tenant', 'counts', 'a')).toEqual({ count: 1 });
    }
  });

  it('release the lease of a killed process at once', async () => {
    const folder = freshFolder();
    const holder = await child('lease', folder, '');
    const readModels = await openIn(folder);
    expect(await readModels.leaseHolder('work')).toBe(holder.line);
    expect(await readModels.lease('work', 'another', 1_000)).toBe(false);
    holder.process.kill('SIGKILL');
    await holder.ended;
    expect(await readModels.leaseHolder('work')).toBeUndefined();
    expect(await readModels.lease('work', 'another', 1_000)).toBe(true);
    expect(await readModels.leaseHolder('work')).toBe('another');
  });

  it('do not release the lease of another machine, whose processes cannot be seen', async () => {
    const dead = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await once(dead, 'exit');
    const readModels = await openIn(freshFolder());
    await readModels.lease('here', `${hostname()} x ${dead.pid}`, 600_000);
    await readModels.lease('there', `not-${hostname()} x ${dead.pid}`, 600_000);
    expect(await readModels.lease('here', 'another', 1_000)).toBe(true);
    expect(await readModels.lease('there', 'another', 1_000)).toBe(false);
  });

  it('do not honour a lease that lasts longer than any: the clock was set back since', async () => {
    const readModels = await openIn(freshFolder());
    await readModels.lease('work', `not-${hostname()} x 1`, 24 * 3_600_000);
    expect(await readModels.lease('work', 'another', 1_000)).toBe(true);
  });

  it('do not wait for the readers of a generation that was left before the clock was set back', async () => {
    const readModels = await openIn(freshFolder(), { startWriter: inThreadWriter({}) });
    expect(await readModels.point('counter', 1, { live: 1 }, undefined)).toBe(true);
    const ahead = Date.now() + 3_600_000;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(ahead);
    try {
      await readModels.point('counter', 1, { live: 2, previous: 1 }, { live: 1 });
      expect(await readModels.liveLately('counter', 1, 4_000)).toEqual([1]);
    } finally {
      clock.mockRestore();
    }
    expect(await readModels.liveLately('counter', 1, 4_000)).toEqual([]);
  });

  const notes = [...collections, { name: 'notes', indexes: { by_place: ['place'] } }];
  const note = (key: string, place: number): Write => ({
    ...count(key, 1),
    collection: 'notes',
    document: { place },
  });
  /** What is unique in the file of a generation. */
  const keysIn = (folder: string): readonly string[] => {
    const db = openForReading(join(folder, `${generationName(id)}.db`));
    const rows = db
      .prepare(
        `SELECT t.name FROM pragma_table_list t JOIN pragma_index_list(t.name) i ON i."unique" = 1
         WHERE t.name LIKE 'docs%' ORDER BY t.name`,
      )
      .all() as { name: string }[];
    db.close();
    return rows.map((row) => row.name);
  };

  const indexesIn = (folder: string): readonly string[] => {
    const db = openForReading(join(folder, `${generationName(id)}.db`));
    const rows = db.prepare(`SELECT name FROM sqlite_master WHERE name LIKE 'notes_by%'`).all();
    db.close();
    return rows.map((row) => (row as { name: string }).name);
  };

  it('do not take a mark that an older program left on a live generation for its removal', async () => {
    const folder = freshFolder();
    const readModels = await openIn(folder);
    const mark = (generation: number): void => {
      const file = openForWriting(join(folder, 'index.db'), 'NORMAL');
      file.prepare(`INSERT INTO askings VALUES (?, 1, '')`).run(`remove counter_v1_${generation}`);
      file.close();
    };
    const [forth, back] = [
      { live: 2, previous: 1 },
      { live: 1, previous: 2 },
    ];
    await readModels.point('counter', 1, forth, undefined);
    mark(2);
    expect(await readModels.isRemoved({ ...id, generation: 2 })).toBe(false);
    expect(await readModels.point('counter', 1, back, forth)).toBe(true);
    expect(await readModels.point('counter', 1, forth, back)).toBe(true);
    mark(1);
    expect(await readModels.isRemoved(id)).toBe(true);
    expect(await readModels.point('counter', 1, back, forth)).toBe(false);
  });

  it('create the primary keys of a build at the first look-up, and the indexes at the end', async () => {
    const folder = freshFolder();
    const readModels = await openIn(folder);
    const build = await readModels.build(id, notes, 'log');
    await build.commit(0, undefined, [count('a', 1), note('a', 1)]);
    await build.commit(1, undefined, [count('b', 2), note('b', 2)]);
    expect(keysIn(folder)).toEqual(['docs_parked', 'docs_streams']);
    expect(await build.load([note('c', 0), count('c', 0)])).toEqual([undefined, undefined]);
    expect(keysIn(folder)).toEqual(['docs_parked', 'docs_streams']);
    expect(await build.load([note('b', 0)])).toEqual([{ place: 2 }]);
    expect(keysIn(folder)).toEqual(['docs_notes', 'docs_parked', 'docs_streams']);
    await build.commit(2, undefined, [count('a', 3)]);
    expect(keysIn(folder)).toEqual(['docs_counts', 'docs_notes', 'docs_parked', 'docs_streams']);
    expect(indexesIn(folder)).toEqual([]);
    const generation = await build.finish();
    expect(indexesIn(folder)).toEqual(['notes_by_place']);
    expect(await generation.reader.find('tenant', 'counts', { limit: 9 })).toEqual([
      { count: 3 },
      { count: 2 },
    ]);
  });

  it('continue with a file of an earlier version, whose tables have their primary keys built in', async () => {
    const folder = freshFolder();
    await (await (await openIn(folder)).open(id, notes, 'log')).commit(0, undefined, [note('a', 1)]);
    const file = openForWriting(join(folder, `${generationName(id)}.db`), 'NORMAL');
    const columns = 'tenant INTEGER NOT NULL, key TEXT NOT NULL, document TEXT NOT NULL, field_place ANY';
    file.exec(`CREATE TABLE earlier (${columns}, PRIMARY KEY (tenant, key)) STRICT;
      INSERT INTO earlier SELECT * FROM docs_notes;
      DROP TABLE docs_notes;
      ALTER TABLE earlier RENAME TO docs_notes;`);
    file.close();
    const generation = await (await openIn(folder)).open(id, notes, 'log');
    expect(await generation.commit(1, undefined, [note('a', 2), note('b', 1)])).toBe(true);
    expect(await generation.reader.find('tenant', 'notes', { index: 'by_place', limit: 9 })).toEqual([
      { place: 1 },
      { place: 2 },
    ]);
    expect(keysIn(folder)).toEqual(['docs_counts', 'docs_notes', 'docs_parked', 'docs_streams']);
  });

  describe('whose index is lost', () => {
    const last = { ...id, generation: 4 };
    const emptied = (path: string): void => {
      rmSync(path);
      openForWriting(path, 'NORMAL').close();
    };
    const damages: typeof fileDamages = { ...fileDamages, 'without any table': emptied };

    it('say so, and that a restart helps, in a process that has it open', async () => {
      const folder = freshFolder();
      const readModels = await openIn(folder);
      const path = join(folder, 'index.db');
      const db = openForWriting(path, 'NORMAL');
      db.exec('DROP TABLE pointers');
      db.close();
      await expect(readModels.pointer(id.projection, id.version)).rejects.toMatchObject({
        code: 'read_models_unavailable',
        message: expect.stringMatching(new RegExp(`${path} cannot be read: .*Restart the service`)),
      });
    });

    it.each(Object.entries(damages))('(%s) are set apart, and begin again', async (_, damage) => {
      const folder = freshFolder();
      const readModels = await sqliteReadModels(folder);
      const generation = await readModels.open(last, collections, 'log');
      await generation.commit(0, undefined, [count('a', 1)]);
      await readModels.point(id.projection, id.version, { live: 4 }, undefined);
      await readModels.close();
      damage(join(folder, 'index.db'), 'pointers');
      const warnings: string[] = [];
      const again = await openIn(folder, { report: (what) => void warnings.push(what) });
      expect(await again.pointer(id.projection, id.version)).toBeUndefined();
      expect(await again.damageOf(last)).toMatch(/index of the read models was lost/);
      await expect(again.open(last, collections, 'log')).rejects.toMatchObject({
        code: 'read_models_unavailable',
        message: expect.stringContaining('tenant-ledger projections rebuild counter'),
      });
      expect(await again.nextNumber(id.projection, id.version)).toBe(5);
      await again.open(id, collections, 'log');
      expect(warnings.length).toBe(existsSync(join(folder, 'index.db.damaged')) ? 1 : 0);
    });
  });
});
