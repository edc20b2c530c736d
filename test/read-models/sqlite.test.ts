import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { generationName, type Write } from '../../src/read-models/read-models';
import { holderName } from '../../src/read-models/lease-holder';
import { setDamagedRegistryAside, sqliteReadModels } from '../../src/read-models/sqlite/sqlite-read-models';
import { generationPath } from '../../src/read-models/sqlite/writer';
import { openForReading, openForWriting, sizeIfTooShort } from '../../src/sqlite/database';
import { pause } from '../../src/async/clock';
import { startThread } from '../../src/async/thread';
import { closeAfterwards } from '../support/closing';
import { countedFailure } from '../support/counted-failure';
import { fileDamages } from '../support/damage';
import { freshFolder } from '../support/folders';
import { inThreadWriter } from '../support/in-thread-writer';
import { itIf } from '../support/it-if';
import { until } from '../support/waiting';
import { readModelsContract } from './contract/contract';
import type { FailingWriterData } from './failing-writer-thread';
import { createAndBuild, createAndOpen, leaseHolder } from '../support/generations';

readModelsContract('SQLite', async () => {
  const folder = freshFolder();
  const { onWrite, ...injection } = countedFailure();
  const writer = inThreadWriter({ onWrite });
  const open = async () => sqliteReadModels(folder, { writer });
  const openWithin = async (maxCommitBytes: number) =>
    sqliteReadModels(freshFolder(), { writer, maxCommitBytes });
  const nowMs = Date.now;
  let passed = 0;
  const later = async (ms: number): Promise<void> => {
    passed += ms;
    jest.spyOn(Date, 'now').mockImplementation(() => nowMs() + passed);
  };
  const earlier = (ms: number) => later(-ms);
  return { readModels: await open(), reopen: open, openWithin, later, earlier, ...injection };
});
afterEach(() => jest.restoreAllMocks());

const collectGarbage = (() => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

/** The file behind a descriptor of this process. Empty: it was closed since. */
const linkOf = (descriptor: string): string => {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return '';
  }
};

describe('read models in SQLite files', () => {
  const id = { projection: 'counter', version: 1, generation: 'one' };
  const collections = [{ name: 'counts', indexes: {} }];
  const count = (key: string, n: number): Write => ({
    tenantId: 'tenant',
    collection: 'counts',
    key,
    document: { count: n },
  });

  const openIn: typeof sqliteReadModels = (...args) => {
    const readModels = sqliteReadModels(...args);
    closeAfterwards(readModels.close);
    return readModels;
  };

  /** Starts a child and waits for its first line. */
  const child = async (...args: string[]) => {
    const started = spawn(process.execPath, [join(__dirname, 'other-process.js'), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    closeAfterwards(() => started.kill('SIGKILL'));
    const ended = once(started, 'exit');
    const [line] = (await once(started.stdout, 'data')) as [Buffer];
    return { process: started, line: line.toString().trim(), ended };
  };

  it('close a generation that another process has removed', async () => {
    const folder = freshFolder();
    const requests: string[] = [];
    const writer = inThreadWriter({ onAnswer: (what) => requests.push(what) });
    const readModels = openIn(folder, { writer, lookMs: 10 });
    const [removed, live] = [
      await createAndOpen(readModels, id, collections, 'log'),
      await createAndOpen(readModels, { ...id, generation: 'two' }, collections, 'log'),
    ];
    await readModels.makeLive(live.id, undefined);
    expect(await openIn(folder).remove(id, { live: true })).toBe(true);
    await until(() => requests.at(-1) === 'close');
    await expect(removed.reader.get('tenant', 'counts', 'a')).rejects.toMatchObject({
      code: 'read_models_unavailable',
    });
    for (const asked of [removed.control(), removed.reader.applied()])
      await expect(asked).rejects.toMatchObject({ code: 'generation_removed' });
    expect(await live.commit(0, undefined, [count('a', 1)])).toBe(true);
    expect(await live.reader.get('tenant', 'counts', 'a')).toEqual({ count: 1 });
  });

  itIf(existsSync('/proc/self/fd'), 'there is no /proc/self/fd')(
    'leave no file open that was removed',
    async () => {
      const folder = freshFolder();
      const readModels = openIn(folder, { lookMs: 10 });
      await createAndOpen(readModels, id, collections, 'log');
      const live = await createAndOpen(readModels, { ...id, generation: 'two' }, collections, 'log');
      const files = (): readonly string[] =>
        readdirSync('/proc/self/fd').flatMap((fd) => {
          const file = linkOf(fd);
          return file.startsWith(generationPath(folder, id)) ? [file] : [];
        });
      await readModels.makeLive(id, undefined);
      const before = files().length;
      await until(() => files().length > before);
      await readModels.makeLive(live.id, id.generation);
      expect(await readModels.remove(id, { live: true })).toBe(true);
      // The driver closes a file when it has also collected its statements.
      await until(() => {
        collectGarbage();
        return files().length === 0;
      });
    },
  );

  it('do not count as damaged while a reader holds up a checkpoint', async () => {
    const folder = freshFolder();
    const readModels = openIn(folder, { lookMs: 20 });
    const live = await createAndOpen(readModels, id, collections, 'log');
    await readModels.makeLive(id, undefined);
    const path = generationPath(folder, id);
    const file = openSync(path, 'r');
    let number = 0;
    /** Reads while a commit that reaches the size of a checkpoint changes the last page. */
    const commitBesideReader = async (): Promise<void> => {
      const reader = openForReading(path);
      reader.exec('BEGIN');
      reader.prepare('SELECT n FROM control').get();
      const writes = Array.from({ length: 3 }, () => count(`${(number += 1)} ${'x'.repeat(200)}`, 1));
      expect(await live.commit((await live.control()).n, undefined, writes)).toBe(true);
      reader.exec('COMMIT');
      reader.close();
    };
    for (let i = 0; i < 2_000 && sizeIfTooShort(file) === undefined; i += 1) await commitBesideReader();
    expect(sizeIfTooShort(file)).toBeDefined();
    await pause(200);
    const { generations } = await readModels.state();
    expect(generations).toEqual([{ ...id, isLive: true }]);
    expect(sizeIfTooShort(file)).toBeUndefined();
    closeSync(file);
  }, 60_000);

  /** POSIX locks end with any close of the file in the same process, and without them another process may delete the `-wal`. */
  itIf(existsSync('/proc/locks'), 'there is no /proc/locks')(
    'keep the locks of their files while they look for damage',
    async () => {
      const folder = freshFolder();
      const readModels = openIn(folder, { lookMs: 10 });
      const live = await createAndOpen(readModels, id, collections, 'log');
      await readModels.makeLive(live.id, undefined);
      await live.commit(0, undefined, [count('a', 1)]);
      const { ino } = statSync(generationPath(folder, live.id));
      const locks = (): number => readFileSync('/proc/locks', 'utf8').split(`:${ino} `).length - 1;
      expect(locks()).toBeGreaterThan(0);
      for (let looks = 0; looks < 10; looks += 1) {
        await pause(10);
        expect(locks()).toBeGreaterThan(0);
      }
    },
  );

  it('work after the writer thread died in the middle of a commit, at any write point', async () => {
    const writes = [count('a', 2), count('b', 2)];
    const points = writes.length + 2;
    const left = new Int32Array(new SharedArrayBuffer(4));
    const writer = (folder: string) =>
      startThread(join(__dirname, 'failing-writer-thread.js'), { folder, left } satisfies FailingWriterData);
    const readModels = openIn(freshFolder(), { writer });
    const generation = await createAndOpen(readModels, id, collections, 'log');
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
      await readModels.open(id, collections);
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
    const readModels = openIn(folder);
    const generation = await createAndOpen(readModels, id, collections, 'log');
    for (const { ended } of both) expect(await ended).toEqual([0, null]);
    expect((await generation.control()).n).toBe(2 * times);
    expect(await generation.reader.get('tenant', 'counts', 'all')).toEqual({ count: 2 * times });
  });

  it('can be opened for the first time by many threads at once', async () => {
    for (let round = 0; round < 3; round++) {
      const folder = freshFolder();
      const all = [1, 2, 3, 4].map(() => openIn(folder));
      const generations = await Promise.all(
        all.map((models) => createAndOpen(models, id, collections, 'log')),
      );
      expect(await generations[0]?.commit(0, undefined, [count('a', 1)])).toBe(true);
      for (const generation of generations)
        expect(await generation.reader.get('tenant', 'counts', 'a')).toEqual({ count: 1 });
    }
  });

  it('release the lease of a killed process at once', async () => {
    const folder = freshFolder();
    const holder = await child('lease', folder, '');
    const readModels = openIn(folder);
    expect(await leaseHolder(readModels, 'work')).toBe(holder.line);
    expect(await readModels.lease(['work'], 'another')).toEqual(new Set());
    holder.process.kill('SIGKILL');
    await holder.ended;
    expect(await leaseHolder(readModels, 'work')).toBeUndefined();
    expect(await readModels.lease(['work'], 'another')).toEqual(new Set(['work']));
  });

  it('release the lease of a process whose number another one has since a restart', async () => {
    const readModels = openIn(freshFolder());
    const [host, middle, pid] = holderName().split(' ') as [string, string, string];
    await readModels.lease(['here'], `${host} ${middle} ${pid}`);
    await readModels.lease(
      ['before'],
      `${host} ${middle.replace(/^./, (c) => (c === '0' ? '1' : '0'))} ${pid}`,
    );
    expect([...(await readModels.state()).leases.keys()]).toEqual(['here']);
  });

  itIf(process.platform === 'linux', 'no /proc')(
    'release the lease of a process that has ended and whose parent has not noticed',
    async () => {
      // The shell becomes another program, which waits for no child.
      const parent = spawn('/bin/sh', ['-c', 'sleep 60 & echo $!; exec sleep 60']);
      closeAfterwards(() => parent.kill('SIGKILL'));
      const [line] = (await once(parent.stdout, 'data')) as [Buffer];
      const pid = Number(line.toString());
      const readModels = openIn(freshFolder());
      await readModels.lease(['work'], `${hostname()} x ${pid}`);
      expect(await leaseHolder(readModels, 'work')).toBeDefined();
      process.kill(pid, 'SIGKILL');
      await until(async () => (await leaseHolder(readModels, 'work')) === undefined, 2_000);
    },
  );

  it('do not release the lease of another machine, whose processes cannot be seen', async () => {
    const dead = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
    await once(dead, 'exit');
    const readModels = openIn(freshFolder());
    await readModels.lease(['here'], `${hostname()} x ${dead.pid}`);
    await readModels.lease(['there'], `not-${hostname()} x ${dead.pid}`);
    expect(await readModels.lease(['here', 'there'], 'another')).toEqual(new Set(['here']));
  });

  const notes = [...collections, { name: 'notes', indexes: { by_place: ['place'] } }];
  const note = (key: string, place: number): Write => ({
    ...count(key, 1),
    collection: 'notes',
    document: { place },
  });
  const indexesIn = (folder: string): readonly string[] => {
    const db = openForReading(join(folder, `${generationName(id)}.db`));
    const rows = db.prepare(`SELECT name FROM sqlite_master WHERE name LIKE 'notes_by%'`).all();
    db.close();
    return rows.map((row) => (row as { name: string }).name);
  };

  it('create the indexes of a build at the end', async () => {
    const folder = freshFolder();
    const build = await createAndBuild(openIn(folder), id, notes, 'log');
    await build.commit(0, undefined, [note('a', 1)]);
    expect(indexesIn(folder)).toEqual([]);
    await build.finish();
    expect(indexesIn(folder)).toEqual(['notes_by_place']);
  });

  it.each([
    ['docs_notes', 'DROP INDEX docs_notes_key'],
    ['docs_counts', 'ALTER TABLE docs_counts RENAME TO new_docs_counts'],
  ])('refuse to continue a build without the keys of %s', async (_, undo) => {
    const folder = freshFolder();
    const readModels = sqliteReadModels(folder);
    await (await createAndBuild(readModels, id, notes, 'log')).commit(0, undefined, [note('a', 1)]);
    await readModels.close();
    const file = openForWriting(join(folder, `${generationName(id)}.db`), 'NORMAL');
    file.exec(undo);
    file.close();
    const again = openIn(folder);
    await expect(again.build(id, notes)).rejects.toMatchObject({ code: 'read_models_unavailable' });
    expect((await again.state()).generations).toMatchObject([{ damage: expect.any(String) }]);
  });

  describe('whose registry is lost', () => {
    const emptied = (path: string): void => {
      rmSync(path);
      openForWriting(path, 'NORMAL').close();
    };
    const damages: typeof fileDamages = { ...fileDamages, 'without any table': emptied };

    it('say so, and that a restart helps, in a process that has it open', async () => {
      const folder = freshFolder();
      const readModels = openIn(folder);
      await readModels.create(id, collections, 'log');
      await readModels.state();
      const path = join(folder, 'registry.db');
      const db = openForWriting(path, 'NORMAL');
      db.exec('DROP TABLE generations');
      db.close();
      await expect(readModels.state()).rejects.toMatchObject({
        code: 'read_models_unavailable',
        message: expect.stringMatching(new RegExp(`${path} cannot be read: .*Restart the service`)),
      });
    });

    it.each(Object.entries(damages))('(%s) are set apart, and begin again', async (_, damage) => {
      const folder = freshFolder();
      const readModels = sqliteReadModels(folder);
      const generation = await createAndOpen(readModels, id, collections, 'log');
      await generation.commit(0, undefined, [count('a', 1)]);
      await readModels.makeLive(id, undefined);
      await readModels.close();
      const path = join(folder, 'registry.db');
      damage(path, 'generations');
      const warnings: string[] = [];
      setDamagedRegistryAside(folder, (what) => void warnings.push(what));
      const again = openIn(folder);
      const next = { ...id, generation: 'two' };
      await again.create(next, collections, 'log');
      const { generations } = await again.state();
      expect(generations).toEqual([
        { ...id, isLive: false, damage: expect.stringContaining('registry') },
        { ...next, isLive: false },
      ]);
      await expect(again.open(id, collections)).rejects.toMatchObject({
        code: 'read_models_unavailable',
        message: expect.stringContaining('tenant-ledger projections rebuild'),
      });
      expect(warnings.length).toBe(existsSync(`${path}.damaged`) ? 1 : 0);
    });

    it.each([
      ['just creating them', (path: string) => openForWriting(path, 'NORMAL').close()],
      ['about to write to an empty file', (path: string) => writeFileSync(path, '')],
    ])('are left to another process that is %s, beside generations', (_, begin) => {
      const folder = freshFolder();
      const path = join(folder, 'registry.db');
      writeFileSync(join(folder, 'logs_v2_1.db'), '');
      begin(path);
      setDamagedRegistryAside(folder, () => undefined);
      expect(existsSync(path)).toBe(true);
    });

    it('are left alone by whoever only looks', async () => {
      const folder = freshFolder();
      const readModels = sqliteReadModels(folder);
      await readModels.create(id, collections, 'log');
      await readModels.close();
      damages['overwritten at its start']?.(join(folder, 'registry.db'), 'generations');
      const files = readdirSync(folder);
      await expect(openIn(folder).state()).rejects.toMatchObject({ code: 'read_models_unavailable' });
      expect(readdirSync(folder)).toEqual(files);
    });
  });

  it('create nothing while they are only read', async () => {
    const folder = join(freshFolder(), 'read-models');
    const readModels = openIn(folder);
    expect((await readModels.state()).generations).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });
});
