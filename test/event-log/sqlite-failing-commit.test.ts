import { randomUUID } from 'node:crypto';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startThread } from '../../src/async/thread';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { logPath } from '../../src/event-log/sqlite/log-file';
import { streamNames } from '../../src/event-log/streams';
import { onDisk, whyNoDisks } from '../support/disks';
import { eventsOf, idsOf, someEvents } from '../support/events';
import type { FailingAppenderData } from '../support/failing-appender-thread';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';
import { openSqliteLog } from '../support/sqlite-logs';
import { refusedWith } from '../support/waiting';

const openFailing = async (how: FailingAppenderData['how']) => {
  const left = new Int32Array(new SharedArrayBuffer(4));
  const file = join(__dirname, '..', 'support', 'failing-appender-thread.js');
  const folder = freshFolder();
  const data: FailingAppenderData = { path: logPath(folder), prefix: '', how, left };
  const log = await openSqliteLog(folder, streamNames(), { appender: startThread(file, data) });
  return { log, fail: (times: number): void => void Atomics.store(left, 0, times) };
};

describe.each(['before', 'rolled back', 'after'] as const)('a failing commit (its effect: %s)', (how) => {
  it('is settled by another attempt', async () => {
    const { log, fail } = await openFailing(how);
    const stream = `tenant-${randomUUID()}`;
    await log.append(stream, someEvents(1), 'no_stream');
    fail(1);
    const events = someEvents(2);
    expect(await log.append(stream, events, 0)).toMatchObject({ revision: 2 });
    expect(idsOf(await eventsOf(log.readStream(stream))).slice(1)).toEqual(idsOf(events));
    expect(await log.append(stream, someEvents(1), 2)).toMatchObject({ revision: 3 });
  });

  it('is never reported as not written', async () => {
    const { log, fail } = await openFailing(how);
    const streams = [1, 2, 3].map(() => `tenant-${randomUUID()}`);
    const events = someEvents(1);
    fail(1_000);
    const codes = await Promise.all(
      streams.map((stream) => refusedWith(log.append(stream, events, 'no_stream'))),
    );
    expect(codes).toEqual(streams.map(() => 'outcome_unknown'));
    fail(0);
    for (const stream of streams) {
      expect(await log.append(stream, events, 'no_stream')).toMatchObject({ revision: 0 });
      expect(await eventsOf(log.readStream(stream))).toHaveLength(1);
    }
  });
});

describe('a full disk', () => {
  itIf(whyNoDisks === '', whyNoDisks)(
    'is certain: nothing was written, also if it was full at the commit',
    () =>
      onDisk('size=1m', async (disk) => {
        const log = await sqliteEventLog(join(disk, 'data'), streamNames());
        const streams = Array.from({ length: 20 }, () => `tenant-${randomUUID()}`);
        const { bavail, bsize } = statfsSync(disk);
        writeFileSync(join(disk, 'filling'), Buffer.alloc(bavail * bsize));
        const events = someEvents(2);
        const codes = await Promise.all(
          streams.map((stream) => refusedWith(log.append(stream, events, 'no_stream'))),
        );
        expect(codes).toEqual(streams.map(() => 'log_unavailable'));
        expect(await eventsOf(log.readAll())).toEqual([]);
        rmSync(join(disk, 'filling'));
        expect(await log.append(streams[0] ?? '', events, 'no_stream')).toMatchObject({ revision: 1 });
        await log.close();
      }),
  );
});
