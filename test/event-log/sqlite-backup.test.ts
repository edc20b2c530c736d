import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pause } from '../../src/async/clock';
import type { EventLog } from '../../src/event-log/event-log';
import {
  createBackup,
  restoreBackup,
  verifyBackup,
  type BackedUp,
  type OnProgress,
} from '../../src/event-log/sqlite/backup';
import { streamNames } from '../../src/event-log/streams';
import { fillBusyLog } from '../support/busy-log';
import { isCampaign, saysHowFar } from '../support/campaign';
import { makeReadOnly, onDisk, whyNoDisks } from '../support/disks';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { fillLargeLog } from '../support/large-log';
import { EMBEDDED } from '../support/profile';
import { command, commandProcess, spawnProgram } from '../support/service';
import { editLog, inFile, openSqliteLog } from '../support/sqlite-logs';

const BACKUPS = Number(process.env['BACKUPS'] ?? 3);
const WRITERS = 64;
/** On a busy machine a backup takes long, and the log must not outgrow it. */
const BETWEEN_APPENDS_MS = 20;
const APPEND_MS = isCampaign ? 600_000 : 30_000;

const streams = streamNames();
const silent: OnProgress = () => undefined;

const withLog = async (count: number, folder = freshFolder()): Promise<string> => {
  const log = await openSqliteLog(folder, streams);
  await fillBusyLog({ log, streams }, count);
  await log.close();
  return folder;
};

type Row = Readonly<Record<string, string | number>>;

const rowsIn = (folder: string): readonly Row[] =>
  inFile(folder, (db) => db.prepare('SELECT * FROM events ORDER BY position').all() as Row[]);

const NAMES = ['position', 'stream', 'revision', 'id', 'type', 'data', 'metadata', 'recorded_at'];

/** The number of rows and their checksum, as docs/backup.md describes it, without having all of them in memory. */
const sealIn = (folder: string, upTo = Number.MAX_SAFE_INTEGER): readonly [number, string] =>
  inFile(folder, (db) => {
    const hash = createHash('sha256');
    let count = 0;
    const rows = db.prepare('SELECT * FROM events WHERE position <= ? ORDER BY position').iterate(upTo);
    for (const row of rows as Iterable<Row>) {
      hash.update(`${JSON.stringify(NAMES.map((name) => row[name]))}\n`);
      count += 1;
    }
    return [count, hash.digest('hex')];
  });

const restored = (backup: string): string => {
  const target = freshFolder();
  restoreBackup(backup, target, silent);
  expect(readdirSync(target)).toEqual(['events.db']);
  return target;
};

const backedUp = async (count: number): Promise<{ source: string; backup: string }> => {
  const [source, backup] = [await withLog(count), freshFolder()];
  createBackup(source, backup, silent);
  return { source, backup };
};

let finished: ReturnType<typeof backedUp> | undefined;
const newBackup = async (): Promise<string> => {
  finished ??= backedUp(30);
  const copy = freshFolder();
  cpSync((await finished).backup, copy, { recursive: true });
  return copy;
};

const bytesIn = (folder: string): Readonly<Record<string, Buffer>> =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));

const refusal = (code: string) => expect.objectContaining({ code });
const UNUSABLE = refusal('backup_unusable');

/** A disk that does not keep what was written. */
const spoil = (path: string): void => {
  const bytes = readFileSync(path);
  for (let at = bytes.indexOf('TokenCreated'); at >= 0; at = bytes.indexOf('TokenCreated', at + 1))
    bytes.write('X', at);
  writeFileSync(path, bytes);
};

const unfinishedIn = (folder: string): string =>
  join(folder, readdirSync(folder).find((name) => name.startsWith('events.db.')) ?? '');

const writerTo = (log: EventLog) => {
  const stream = streams.activity(randomUUID());
  let revision = -1;
  return async (isStopped: () => boolean): Promise<void> => {
    while (!isStopped()) {
      const events = ['TokenCreated', 'TokenUsed'].map((type) => ({
        id: randomUUID(),
        type,
        data: { entityId: randomUUID() },
        metadata: { version: 1 },
      }));
      ({ revision } = await log.append(stream, events, revision < 0 ? 'no_stream' : revision, APPEND_MS));
      await pause(BETWEEN_APPENDS_MS);
    }
  };
};

describe('a backup', () => {
  it(`is complete and exact while ${WRITERS} writers append, ${BACKUPS} times into one folder`, async () => {
    const [source, backup] = [freshFolder(), freshFolder()];
    // Closed also if the test fails: its writers would keep the process alive.
    const log = await openSqliteLog(source, streams);
    const writers = Array.from({ length: WRITERS }, () => writerTo(log));
    const saysDone = saysHowFar('backups', BACKUPS);
    for (let run = 0; run < BACKUPS; run += 1) {
      let isStopped = false;
      const before = Number((await log.head())?.position ?? 0);
      const writing = writers.map((write) => write(() => isStopped));
      const made = await commandProcess(['backup', 'create', backup, '--json'], {
        DATA_DIR: source,
        ...EMBEDDED,
      });
      isStopped = true;
      await Promise.all(writing);
      const { events, last_position, checksum } = JSON.parse(made.stdout) as Record<string, string>;
      expect(Number(last_position)).toBeGreaterThan(before);
      expect((await log.head())?.position).not.toBe(last_position);
      expect(sealIn(restored(backup))).toEqual([events, checksum]);
      expect(sealIn(source, Number(last_position))).toEqual([events, checksum]);
      expect(Number(events) % 2).toBe(0); // both events of an append, or none
      saysDone(run + 1);
    }
    await log.close();
  });

  it('describes itself, and has the identity of the log', async () => {
    const { source, backup } = await backedUp(20);
    const [, checksum] = sealIn(source);
    const last = rowsIn(source).at(-1)!;
    const expected: BackedUp = {
      identity: await (await openSqliteLog(source, streams)).identity(),
      events: 20,
      lastPosition: '0000000000000020',
      lastRecordedAt: new Date(last['recorded_at'] as number).toISOString(),
      checksum,
    };
    expect(verifyBackup(backup, silent)).toEqual(expected);
    const log = await openSqliteLog(restored(backup), streams);
    expect(await log.identity()).toBe(expected.identity);
    const empty = freshFolder();
    expect(createBackup(await withLog(0), empty, silent)).toMatchObject({ events: 0 });
    expect(rowsIn(restored(empty))).toEqual([]);
  });

  it('is verified and restored without a change in its folder', async () => {
    const backup = await newBackup();
    const before = bytesIn(backup);
    expect(Object.keys(before)).toEqual(['events.db']);
    verifyBackup(backup, silent);
    restored(backup);
    expect(bytesIn(backup)).toEqual(before);
  });

  itIf(whyNoDisks === '', whyNoDisks)('is verified and restored from a read-only disk', () =>
    onDisk('size=16m', async (disk) => {
      cpSync(await newBackup(), disk, { recursive: true });
      makeReadOnly(disk);
      expect(() => writeFileSync(join(disk, 'x'), '')).toThrow('EROFS');
      expect(verifyBackup(disk, silent)).toMatchObject({ events: 30 });
      expect(rowsIn(restored(disk))).toHaveLength(30);
    }),
  );

  it('that was killed leaves the earlier one as it was, and the next one replaces it', async () => {
    const { source, backup } = await backedUp(20);
    const before = bytesIn(backup);
    await fillLargeLog(source, 30_000);
    const child = spawnProgram(['backup', 'create', backup], { DATA_DIR: source, ...EMBEDDED });
    const ended = once(child, 'close');
    while (readdirSync(backup).length === 1) await pause(1);
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(bytesIn(backup)).toMatchObject(before);
    expect(verifyBackup(backup, silent)).toMatchObject({ events: 20 });
    expect(createBackup(source, backup, silent)).toMatchObject({ events: 30_020 });
    expect(rowsIn(restored(backup))).toEqual(rowsIn(source));
  });

  it('that the disk did not keep is refused, and leaves the earlier one as it was', async () => {
    const { source, backup } = await backedUp(20);
    await withLog(20, source);
    const before = bytesIn(backup);
    const onProgress: OnProgress = (events) => {
      if (events === 0) spoil(unfinishedIn(backup));
    };
    expect(() => createBackup(source, backup, onProgress)).toThrow(UNUSABLE);
    expect(bytesIn(backup)).toEqual(before);
  });

  it.each<readonly [string, string]>([
    ...NAMES.map((name): readonly [string, string] => [
      `another ${name} of an event`,
      `UPDATE events SET ${name} = CASE typeof(${name}) WHEN 'text' THEN ${name} || ' ' ELSE ${name} + 1000 END WHERE position = 7`,
    ]),
    ['a removed event', 'DELETE FROM events WHERE position = 7'],
    ['a removed last event', 'DELETE FROM events WHERE position = (SELECT max(position) FROM events)'],
    [
      'another order',
      'UPDATE events SET position = -1 WHERE position = 7; UPDATE events SET position = 7 WHERE position = 8; UPDATE events SET position = 8 WHERE position = -1',
    ],
  ])('with %s is refused, and nothing is restored', async (_, sql) => {
    const [backup, target] = [await newBackup(), freshFolder()];
    editLog(backup, sql);
    expect(() => verifyBackup(backup, silent)).toThrow(UNUSABLE);
    expect(() => restoreBackup(backup, target, silent)).toThrow(UNUSABLE);
    expect(readdirSync(target)).toEqual([]);
  });

  it('with a damaged index is refused', async () => {
    const backup = await newBackup();
    const page = inFile(backup, (db) =>
      db.prepare(`SELECT rootpage - 1 AS at FROM sqlite_master WHERE name = 'events_by_stream'`).get(),
    ) as { at: number };
    const path = join(backup, 'events.db');
    const bytes = readFileSync(path);
    bytes.write('X', bytes.indexOf('activity-', 4_096 * page.at));
    writeFileSync(path, bytes);
    expect(() => verifyBackup(backup, silent)).toThrow('is damaged');
    expect(() => restoreBackup(backup, freshFolder(), silent)).toThrow(UNUSABLE);
  });

  it('that is no database, no backup or not there is refused', async () => {
    const folder = freshFolder();
    expect(() => verifyBackup(folder, silent)).toThrow('contains no backup');
    writeFileSync(join(folder, 'events.db'), Buffer.alloc(8_192, 1));
    expect(() => verifyBackup(folder, silent)).toThrow('not a database');
    expect(() => restoreBackup(folder, freshFolder(), silent)).toThrow(UNUSABLE);
    const log = await withLog(1);
    expect(() => verifyBackup(log, silent)).toThrow('is not a backup');
  });

  it('never replaces that of another log or of a longer history, nor a log', async () => {
    const { source, backup } = await backedUp(30);
    const other = await withLog(40);
    expect(() => createBackup(other, backup, silent)).toThrow('another log, or was rolled back');
    const older = freshFolder();
    cpSync(source, older, { recursive: true });
    editLog(older, 'DELETE FROM events WHERE position > 25');
    expect(() => createBackup(older, backup, silent)).toThrow('another log, or was rolled back');
    expect(verifyBackup(backup, silent)).toMatchObject({ events: 30 });
    for (const log of [source, other, restored(backup)]) {
      const before = rowsIn(log);
      expect(() => createBackup(source, log, silent)).toThrow('an event log that is not a backup');
      expect(rowsIn(log)).toEqual(before);
    }
  });

  it('is not made in a folder with other files, but beside the remains of one that was killed', async () => {
    const source = await withLog(3);
    const folder = freshFolder();
    const remains = join(folder, `events.db.${randomUUID()}`);
    writeFileSync(remains, 'x');
    writeFileSync(join(folder, 'notes.txt'), 'x');
    expect(() => createBackup(source, folder, silent)).toThrow('contains notes.txt, and no backup');
    expect(readdirSync(folder)).toHaveLength(2);
    rmSync(join(folder, 'notes.txt'));
    expect(createBackup(source, folder, silent)).toMatchObject({ events: 3 });
    // It is one now, whatever else is put there.
    writeFileSync(join(folder, 'notes.txt'), 'x');
    expect(createBackup(source, folder, silent)).toMatchObject({ events: 3 });
  });
});

describe('a restore', () => {
  it('overwrites nothing, even if it appears meanwhile', async () => {
    const backup = await newBackup();
    const full = freshFolder();
    writeFileSync(join(full, 'secret'), 'mine');
    expect(() => restoreBackup(backup, full, silent)).toThrow('contains secret');
    const target = freshFolder();
    const appear: OnProgress = () => writeFileSync(join(target, 'events.db'), 'mine');
    expect(() => restoreBackup(backup, target, appear)).toThrow(refusal('restore_refused'));
    expect(bytesIn(target)).toEqual({ 'events.db': Buffer.from('mine') });
  });

  it('is verified in the file that it wrote', async () => {
    const [backup, target] = [await newBackup(), freshFolder()];
    const onProgress: OnProgress = (events) => {
      if (events === 0) spoil(unfinishedIn(target));
    };
    expect(() => restoreBackup(backup, target, onProgress)).toThrow(UNUSABLE);
    expect(readdirSync(target)).toEqual([]);
  });

  it('that is in progress or was killed is no first start, and is not disturbed by a second one', async () => {
    const backup = freshFolder();
    createBackup(await fillLargeLog(freshFolder(), 30_000), backup, silent);
    const target = freshFolder();
    const env = { DATA_DIR: target, PORT: '0', OPS_PORT: '0', ...EMBEDDED };
    const child = spawnProgram(['backup', 'restore', backup], env);
    const ended = once(child, 'close');
    while (readdirSync(target).length === 0 || statSync(unfinishedIn(target)).size === 0) await pause(1);
    child.kill('SIGSTOP');
    const lines = [['serve'], ['tenant', 'create', '--name', 'X'], ['tenant', 'list']];
    for (const line of [...lines, ['backup', 'restore', backup]]) {
      const { code, stdout, stderr } = await command(line, env);
      expect({ line, code, stdout }).toEqual({ line, code: 1, stdout: '' });
      expect(stderr).toMatch(/events\.db\.restoring.*\[(log_incomplete|restore_refused)\]/s);
    }
    expect(readdirSync(target)).not.toContain('events.db');
    child.kill('SIGKILL');
    await ended;
    expect((await command(['serve'], env)).stderr).toContain('empty the folder and run');
    for (const name of readdirSync(target)) rmSync(join(target, name));
    expect((await command(['backup', 'restore', backup], env)).code).toBe(0);
    expect(rowsIn(target)).toHaveLength(30_000);
  });
});
