import { createHash, randomUUID } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { ensureLog, type Opening } from '../../src/event-log/sqlite/log-file';
import { appending } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { messageOf } from '../../src/fault';
import * as database from '../../src/sqlite/database';
import { closeAfterwards } from '../support/closing';
import { eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { openSqliteLog } from '../support/sqlite-logs';
import { refusedWith } from '../support/waiting';

const open = (folder: string, prefix = '', opening: Opening = 'create') =>
  openSqliteLog(folder, streamNames(prefix), { opening });

const fileIn = (folder: string): string => join(folder, 'events.db');

describe('the prefix of a SQLite log', () => {
  const opening = ['create', 'write', 'read'] as const;

  it.each(opening)('is stored with it, and another one is refused however it is opened: %s', async (how) => {
    const folder = freshFolder();
    await (await open(folder, 'one-')).close();
    const error = await open(folder, 'two-', how).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'log_of_another_prefix' });
    expect(messageOf(error)).toContain('have the prefix "one-", but STREAM_PREFIX is "two-"');
    expect(await refusedWith(open(folder, '', how))).toBe('log_of_another_prefix');
    await open(folder, 'one-', how);
  });
});

describe('the place of a SQLite log', () => {
  /** An appender that was killed: its event is in the `-wal` file. */
  const killed = (): string => {
    const [folder, from] = [freshFolder(), freshFolder()];
    ensureLog(fileIn(from), '', 'create');
    const { answer, close } = appending({ path: fileIn(from), prefix: '' });
    closeAfterwards(close);
    const events = [{ id: randomUUID(), type: 'X', data: '{}', metadata: '{}' }];
    answer([{ type: 'append', stream: `tenant-${randomUUID()}`, expected: 'no_stream', events }]);
    for (const ending of ['', '-wal']) copyFileSync(`${fileIn(from)}${ending}`, `${fileIn(folder)}${ending}`);
    return folder;
  };

  const contents = (folder: string) =>
    readdirSync(folder)
      .map((name) => ({ name, bytes: readFileSync(join(folder, name)) }))
      .filter(({ name, bytes }) => !name.endsWith('-shm') && (bytes.length > 0 || name === 'events.db'))
      .map(({ name, bytes }) => [name, createHash('sha256').update(bytes).digest('hex')]);

  it('is accepted unchanged after a kill', async () => {
    const folder = killed();
    const log = await open(folder);
    expect(await eventsOf(log.readAll())).toHaveLength(1);
  });

  it.each<readonly [string, (folder: string) => void, string]>([
    ['a log whose file is missing', (folder) => rmSync(fileIn(folder)), 'is missing, but '],
    [
      'nothing of a log but its -shm',
      (folder) => {
        rmSync(fileIn(folder));
        rmSync(`${fileIn(folder)}-wal`);
        writeFileSync(`${fileIn(folder)}-shm`, '');
      },
      'is missing, but ',
    ],
    [
      'nothing but a restore that was interrupted',
      (folder) => {
        rmSync(`${fileIn(folder)}-wal`);
        renameSync(fileIn(folder), `${fileIn(folder)}.restoring`);
      },
      'run `tenant-ledger backup restore` again',
    ],
    ['a log that was emptied', (folder) => writeFileSync(fileIn(folder), ''), 'is empty'],
  ])('is refused, unchanged, if there is %s', async (_, spoil, says) => {
    const folder = killed();
    spoil(folder);
    const before = contents(folder);
    for (const how of ['create', 'write', 'read'] as const) {
      const error = await open(folder, '', how).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'log_incomplete' });
      expect(messageOf(error)).toContain(says);
      expect(messageOf(error)).toContain('estore ');
    }
    expect(contents(folder)).toEqual(before);
  });

  it('stays empty for programs that only read or expect an existing log', async () => {
    for (const how of ['write', 'read'] as const) {
      const folder = freshFolder();
      expect(await refusedWith(open(folder, '', how))).toBe('log_incomplete');
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  it('holds nothing but a complete log once one is created, which is on disk', async () => {
    const folder = freshFolder();
    const synced = jest.spyOn(database, 'syncFile');
    await open(folder);
    expect(synced.mock.calls).toEqual([[expect.stringContaining('events.db.')], [folder]]);
    synced.mockRestore();
    expect(readdirSync(folder).toSorted()).toEqual(['events.db', 'events.db-shm', 'events.db-wal']);
  });
});

describe('the file of a SQLite log', () => {
  it('is complete on its own when the log is closed', async () => {
    const folder = freshFolder();
    const log = await open(folder);
    const stream = `tenant-${randomUUID()}`;
    await log.append(stream, someEvents(20), 'no_stream');
    await eventsOf(log.readAll());
    await log.close();
    expect(existsSync(`${fileIn(folder)}-wal`) && statSync(`${fileIn(folder)}-wal`).size > 0).toBe(false);
    const alone = freshFolder();
    copyFileSync(fileIn(folder), fileIn(alone));
    expect(await eventsOf((await open(alone)).readStream(stream))).toHaveLength(20);
  });
});
