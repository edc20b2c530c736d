import { DatabaseSync } from '@photostructure/sqlite';
import { fork, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startThread } from '../../src/async/thread';
import type { Opening } from '../../src/event-log/sqlite/log-file';
import { ensureLog } from '../../src/event-log/sqlite/log-file';
import { appending, sqliteEventLog, type AppenderFile } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames, type Streams } from '../../src/event-log/streams';
import { messageOf } from '../../src/fault';
import { appendRacing } from '../support/appending-process';
import { closeAfterwards } from '../support/closing';
import { anEvent, eventsOf, idsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { openSqliteLog } from '../support/sqlite-logs';
import { refusedWith, until } from '../support/waiting';
import { eventLogContract } from './contract/contract';
import type { OpenedLog } from './contract/given-log';

const openIn = async (folder: string, streams: Streams, opening: Opening = 'create'): Promise<OpenedLog> => {
  const log = await sqliteEventLog(folder, streams, { opening });
  return {
    log,
    streams,
    reopen: async () => {
      await log.close();
      return openIn(folder, streams);
    },
    beside: () => sqliteEventLog(folder, streams),
  };
};

eventLogContract('sqlite', (purpose) => openIn(freshFolder(), streamNames(), purpose));

describe('the SQLite event log', () => {
  const openFile = (folder: string): InstanceType<typeof DatabaseSync> => {
    const db = new DatabaseSync(join(folder, 'events.db'));
    closeAfterwards(() => db.isOpen && db.close());
    return db;
  };

  const startProcess = async (folder: string, stream: string, count: number): Promise<ChildProcess> => {
    const file = join(__dirname, '..', 'support', 'appending-process.js');
    const child = fork(file, [folder, stream, String(count)], { execArgv: [] });
    closeAfterwards(() => child.kill('SIGKILL'));
    await once(child, 'message');
    return child;
  };

  const begin = async (child: ChildProcess): Promise<readonly string[]> => {
    child.send('begin');
    const [ids] = (await once(child, 'message')) as [readonly string[]];
    return ids;
  };

  const appenderIn = (folder: string) => {
    const file = { path: join(folder, 'events.db'), prefix: '' };
    ensureLog(file.path, file.prefix, 'create');
    return appending(file);
  };

  it('answers each request of a group separately', () => {
    const appender = appenderIn(freshFolder());
    closeAfterwards(() => appender.close());
    const rows = (count: number) =>
      Array.from({ length: count }, () => ({ id: randomUUID(), type: 'X', data: '{}', metadata: '{}' }));
    const same = rows(1);
    const outcomes = appender.answer([
      { type: 'append', stream: 'a', expected: 'no_stream', events: rows(2) },
      { type: 'append', stream: 'a', expected: 'no_stream', events: rows(1) },
      { type: 'append', stream: 'b', expected: 'no_stream', events: same },
      { type: 'append', stream: 'b', expected: 'no_stream', events: same },
      { type: 'append', stream: 'a', expected: 1, events: rows(1) },
    ]);
    expect(outcomes).toMatchObject([
      { value: { revision: 1 } },
      { error: { code: 'stream_changed', more: { actual: 1 } } },
      { value: { revision: 0 } },
      { value: { revision: 0 } },
      { value: { revision: 2 } },
    ]);
    expect(outcomes[3]).toEqual(outcomes[2]);
  });

  it('fails only the append that cannot be stored, and stores the others of its group', async () => {
    const log = await openSqliteLog();
    const unstorable = anEvent({}, { type: ['no text'] as unknown as string });
    const appends = Array.from({ length: 20 }, (_, at) =>
      log.append(`s${at}`, at === 7 ? [anEvent(), unstorable] : someEvents(2), 'no_stream'),
    );
    const outcomes = await Promise.allSettled(appends);
    expect(outcomes.map(({ status }) => status)).toEqual(
      appends.map((_, at) => (at === 7 ? 'rejected' : 'fulfilled')),
    );
    expect(outcomes[7]).toMatchObject({ reason: { code: 'log_unavailable' } });
    for (const at of appends.keys())
      expect(await eventsOf(log.readStream(`s${at}`))).toHaveLength(at === 7 ? 0 : 2);
  });

  it('can be shared by several processes: no gap, nothing lost, no duplicates', async () => {
    const folder = freshFolder();
    const log = await openSqliteLog(folder);
    const stream = `tenant-${randomUUID()}`;
    const children = await Promise.all([1, 2].map(() => startProcess(folder, stream, 60)));
    const ids = await Promise.all([appendRacing(log, stream, 60), ...children.map(begin)]);
    const events = await eventsOf(log.readStream(stream));
    expect(events.map((event) => event.revision)).toEqual(Array.from({ length: 180 }, (_, i) => i));
    expect(idsOf(events).toSorted()).toEqual(ids.flat().toSorted());
  });

  it("notices another process's appends", async () => {
    const folder = freshFolder();
    const log = await openSqliteLog(folder);
    const child = await startProcess(folder, `tenant-${randomUUID()}`, 5);
    const abort = new AbortController();
    let count = 0;
    const following = (async () => {
      for await (const batch of log.readAll({ follow: true, signal: abort.signal })) count += batch.length;
    })();
    await begin(child);
    await until(() => count >= 5);
    abort.abort();
    await following;
    expect(count).toBe(5);
  });

  describe('while another connection holds the lock', () => {
    const locked = async (inThread = true) => {
      const folder = freshFolder();
      const file = join(__dirname, '..', 'support', 'appender-thread.js');
      const at: AppenderFile = { path: join(folder, 'events.db'), prefix: '' };
      const appender = inThread ? startThread(file, at) : undefined;
      const log = await openSqliteLog(folder, streamNames(), { appender });
      const stream = `tenant-${randomUUID()}`;
      await log.append(stream, someEvents(1), 'no_stream');
      const db = openFile(folder);
      db.exec('BEGIN IMMEDIATE');
      return { log, stream, release: () => db.exec('ROLLBACK') };
    };

    it.each([
      // On a busy machine the thread may be too late to say that nothing was written.
      ['a thread of its own', true, /^(log_unavailable|outcome_unknown)$/],
      ['a command', false, /^log_unavailable$/],
    ])('reports that it is unavailable, and works again afterwards: %s', async (_, inThread, refused) => {
      const { log, stream, release } = await locked(inThread);
      expect(await refusedWith(log.append(stream, someEvents(1), 0))).toMatch(refused);
      expect(await eventsOf(log.readStream(stream))).toHaveLength(1);
      release();
      expect((await log.append(stream, someEvents(1), 0)).revision).toBe(1);
    });

    it('answers every request, and never reports as not written what is then written', async () => {
      const { log, stream, release } = await locked();
      const ask = async (i: number) => {
        const withinMs = 100 * (i + 1);
        const own = `tenant-${randomUUID()}`;
        const code = await refusedWith(log.append(own, someEvents(1), 'no_stream', withinMs));
        return { own, code };
      };
      const answers = await Promise.all(Array.from({ length: 15 }, (_, i) => ask(i)));
      release();
      await log.append(stream, someEvents(1), 0);
      for (const { own, code } of answers) {
        expect(['log_unavailable', 'outcome_unknown']).toContain(code);
        if (code === 'log_unavailable') expect(await eventsOf(log.readStream(own))).toEqual([]);
      }
    });
  });

  it.each(['create', 'write', 'read'] as const)(
    'refuses any other format when it opens a log to %s',
    async (opening) => {
      const folder = freshFolder();
      await (await openSqliteLog(folder)).close();
      openFile(folder).exec(`UPDATE meta SET value = '2' WHERE name = 'format'`);
      const error: unknown = await sqliteEventLog(folder, streamNames(), { opening }).catch(
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject({ code: 'log_of_newer_program' });
      expect(messageOf(error)).toContain('has format 2, and this program knows only format 1.');
    },
  );

  it('refuses a file that is not a database', async () => {
    const folder = freshFolder();
    writeFileSync(join(folder, 'events.db'), 'This is a letter, not a database. '.repeat(50));
    expect(await refusedWith(sqliteEventLog(folder, streamNames()))).toBe('log_unavailable');
  });

  it('returns data that is not JSON as bytes', async () => {
    const folder = freshFolder();
    const log = await openSqliteLog(folder);
    const stream = `tenant-${randomUUID()}`;
    await log.append(stream, someEvents(3), 'no_stream');
    const db = openFile(folder);
    db.exec(`UPDATE events SET data = 'no JSON ä' WHERE revision = 0`);
    db.exec(`UPDATE events SET metadata = '{' WHERE revision = 1`);
    db.exec(`UPDATE events SET data = x'ff00fe' WHERE revision = 2`);
    const events = await eventsOf(log.readStream(stream));
    expect(events[0]).toMatchObject({ data: Buffer.from('no JSON ä'), metadata: {} });
    expect(events[1]).toMatchObject({ data: { number: 1 }, metadata: Buffer.from('{') });
    expect(events[2]?.data).toEqual(Buffer.from([0xff, 0, 0xfe]));
  });

  it('reports damage of the file as log_unavailable, whatever is read', async () => {
    const folder = freshFolder();
    const { log, streams } = await openIn(folder, streamNames());
    closeAfterwards(log.close);
    const tenantId = randomUUID();
    const [stream, other] = [streams.activity(tenantId), streams.tenant(tenantId)];
    await log.append(other, someEvents(300), 'no_stream');
    const { position } = await log.append(stream, someEvents(300), 'no_stream');
    const [first] = await eventsOf(log.readTenant(tenantId));
    // Pages in memory are read again only after another connection has written.
    await log.append(stream, someEvents(1), 299);
    for (const name of ['events.db', 'events.db-wal']) {
      const file = join(folder, name);
      writeFileSync(file, Buffer.concat([readFileSync(file).subarray(0, 100), Buffer.alloc(1_000_000, 7)]));
    }
    const reads: Readonly<Record<string, () => Promise<unknown>>> = {
      head: () => log.head(),
      readAll: () => eventsOf(log.readAll()),
      readStream: () => eventsOf(log.readStream(stream)),
      readTenant: () => eventsOf(log.readTenant(tenantId)),
      'readTenant after a position': () => eventsOf(log.readTenant(tenantId, { after: first!.position })),
      revisionAt: () => log.revisionAt(stream, position),
      identity: () => log.identity(),
    };
    for (const [name, read] of Object.entries(reads)) {
      const outcome = await (async () => read())().then(
        () => 'no error',
        (error: unknown) => error,
      );
      const more = { detail: expect.stringContaining('damaged: the operator has to restore a backup') };
      expect([name, outcome]).toMatchObject([
        name,
        { code: 'log_unavailable', more: { isFinal: true, ...more } },
      ]);
    }
  });
});
