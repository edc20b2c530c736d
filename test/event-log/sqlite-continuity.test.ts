import { randomUUID } from 'node:crypto';
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { streamNames } from '../../src/event-log/streams';
import { eventsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { editLog, openSqliteLog } from '../support/sqlite-logs';
import { refusedWith } from '../support/waiting';

const streams = streamNames();
const opened = async () => {
  const folder = freshFolder();
  const log = await openSqliteLog(folder, streams);
  const stream = streams.tenant(randomUUID());
  await log.append(stream, someEvents(10), 'no_stream');
  const all = await eventsOf(log.readAll());
  const known = all.map(({ id, position }) => ({ eventId: id, position }));
  return { folder, path: join(folder, 'events.db'), log, stream, known, last: known.at(-1)! };
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
  ])('is broken when the file is %s, and nothing more is acknowledged', async (_, change) => {
    const { path, log, stream, last } = await opened();
    expect(await log.continuity(last)).toBe('whole');
    change(path);
    expect(await log.continuity(last)).toBe('replaced');
    expect(await log.continuity()).toBe('replaced');
    expect(await refusedWith(log.append(stream, someEvents(1), 9))).toBe('log_set_back');
  });

  it('is broken when the file is restored in place from an older copy', async () => {
    const { folder, log, known, last } = await opened();
    editLog(folder, 'DELETE FROM events WHERE position > 4');
    expect(await log.continuity(last)).toBe('set_back');
    expect(await log.continuity(known[3])).toBe('whole');
    await log.append(streams.tenant(randomUUID()), someEvents(10), 'no_stream');
    expect(await log.continuity(last)).toBe('set_back');
  });

  it('distinguishes a deleted row from a log that was rolled back', async () => {
    const { folder, log, known, last } = await opened();
    editLog(folder, 'DELETE FROM events WHERE position = 4');
    expect(await log.continuity(known[3])).toBe('missing');
    expect(await log.continuity(last)).toBe('whole');
  });

  it('is broken when the file has the identity of another log', async () => {
    const { folder, log } = await opened();
    editLog(folder, `UPDATE meta SET value = '${randomUUID()}' WHERE name = 'identity'`);
    expect(await log.continuity()).toBe('replaced');
  });
});
