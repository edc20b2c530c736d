import { randomUUID } from 'node:crypto';
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { openForWriting } from '../../src/sqlite/database';
import { closeAfterwards } from '../support/closing';
import { eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { refusedWith } from '../support/waiting';

const streams = streamNames();
const opened = async () => {
  const folder = freshFolder();
  const log = await sqliteEventLog(folder, streams);
  closeAfterwards(log.close);
  const stream = streams.tenant(randomUUID());
  await log.append(stream, someEvents(10), 'no_stream');
  const all = await eventsOf(log.readAll());
  const known = all.map(({ id, position }) => ({ eventId: id, position }));
  return { folder, path: join(folder, 'events.db'), log, stream, known, last: known.at(-1)! };
};

/** As a tool edits the file that others have open. */
const change = (path: string, sql: string): void => {
  const db = openForWriting(path, 'FULL');
  db.exec(sql);
  db.close();
};

describe('the continuity of a log in a file', () => {
  it.each<[string, (path: string) => void]>([
    ['removed', (path) => rmSync(path)],
    ['moved away', (path) => renameSync(path, `${path}.old`)],
    [
      'replaced by an older copy',
      (path) => {
        copyFileSync(path, `${path}.copy`);
        renameSync(`${path}.copy`, path);
      },
    ],
  ])('is broken when the file is %s, and nothing more is acknowledged', async (_, change_) => {
    const { path, log, stream, last } = await opened();
    expect(await log.continuity(last)).toBe('whole');
    change_(path);
    expect(await log.continuity(last)).toBe('replaced');
    expect(await log.continuity()).toBe('replaced');
    expect(await refusedWith(log.append(stream, someEvents(1), 9))).toBe('log_set_back');
  });

  it('is broken when the file is restored in place from an older copy', async () => {
    const { path, log, known, last } = await opened();
    change(path, 'DELETE FROM events WHERE position > 4');
    expect(await log.continuity(last)).toBe('set_back');
    expect(await log.continuity(known[3])).toBe('whole');
    await log.append(streams.tenant(randomUUID()), someEvents(10), 'no_stream');
    expect(await log.continuity(last)).toBe('set_back');
  });

  it('distinguishes a deleted row from a log that was rolled back', async () => {
    const { path, log, known, last } = await opened();
    change(path, 'DELETE FROM events WHERE position = 4');
    expect(await log.continuity(known[3])).toBe('missing');
    expect(await log.continuity(last)).toBe('whole');
  });

  it('is broken when the file has the identity of another log', async () => {
    const { path, log } = await opened();
    change(path, `UPDATE meta SET value = '${randomUUID()}' WHERE name = 'identity'`);
    expect(await log.continuity()).toBe('replaced');
  });
});
