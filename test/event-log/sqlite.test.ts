import { DatabaseSync } from '@photostructure/sqlite';
import { fork, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { startThread } from '../../src/async/thread';
import type { EventLog } from '../../src/event-log/event-log';
import { openAppender, type AppenderFile } from '../../src/event-log/sqlite/appender';
import { sqliteEventLog, type Opening } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames, type Streams } from '../../src/event-log/streams';
import { messageOf } from '../../src/fault';
import { closeAfterwards } from '../support/closing';
import { appendRacing } from '../support/appending-process';
import { anEvent, eventsOf, idsOf, someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
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
  const openLog = async (folder: string): Promise<EventLog> => {
    const log = await sqliteEventLog(folder, streamNames());
    closeAfterwards(() => log.close());
    return log;
  };

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

  it('has every commit on disk before it responds: synchronous is FULL, the journal is WAL', () => {
    const appender = openAppender(join(freshFolder(), 'events.db'));
    closeAfterwards(() => appender.close());
    expect(appender.db.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
    expect(appender.db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
  });

  it('answers each request of a group separately', () => {
    const appender = openAppender(join(freshFolder(), 'events.db'));
    closeAfterwards(() => appender.close());
    const rows = (count: number) =>
      Array.from({ length: count }, () => ({ id: randomUUID(), type: 'X', data: '{}', metadata: '{}' }));
    const same = rows(1);
    const outcomes = appender.appendGroup([
      { stream: 'a', expected: 'no_stream', events: rows(2) },
      { stream: 'a', expected: 'no_stream', events: rows(1) },
      { stream: 'b', expected: 'no_stream', events: same },
      { stream: 'b', expected: 'no_stream', events: same },
      { stream: 'a', expected: 1, events: rows(1) },
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
    const log = await openLog(freshFolder());
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

  it('reads a page as one text exactly as row by row, whatever was put into the file', async () => {
    const folder = freshFolder();
    const log = await openLog(folder);
    const stream = `tenant-${randomUUID()}`;
    await log.append(stream, someEvents(3), 'no_stream');
    // As SQL, because the driver cuts a bound text at a NUL as well.
    const odd = [
      `'{"a":"é 😀"}'`,
      `'no JSON'`,
      `'{"a":1}' || char(0)`,
      `CAST('{"a":1}' AS BLOB)`,
      `''`,
      `'{"a":1},2'`,
      `'{}],[9,"s",0,"i","t",{}'`,
      `' {"a":"\\u0000"} '`,
      { type: `'a' || char(0) || 'b'` },
      { type: `'"\\n' || char(10)` },
      { type: `CAST('T' AS BLOB)` },
      { id: `''` },
      { data: `'{"a":1},1,{"version":1,"b":"'`, metadata: `'"}'` },
      { data: `'{"a":1},1,[1'`, metadata: `'2]'` },
      { metadata: `'{},1,1,1],[9,"s",0,"i","t",{},1,{}'` },
      { recorded_at: `'soon'` },
      { recorded_at: `'[]'` },
      { recorded_at: 1.5 },
      { recorded_at: `x'31'` },
      // From here on in the order of a stream: numbers, texts, bytes.
      { revision: `'7,7'` },
      { revision: `'[]'` },
      { revision: `x'37'` },
    ];
    const file = openFile(folder);
    const put = (one: string | Readonly<Record<string, string | number>>, revision: number): void => {
      const row = {
        stream: `'${stream}'`,
        revision,
        id: `'${randomUUID()}'`,
        type: `'Odd' || char(30)`,
        data: `'{}'`,
        metadata: `'{"version":1}'`,
        recorded_at: 0,
        ...(typeof one === 'string' ? { data: one } : one),
      };
      file.exec(`INSERT INTO events (${Object.keys(row).join()}) VALUES (${Object.values(row).join()})`);
    };
    const isReadAlike = async (events: number): Promise<void> => {
      const all = await eventsOf(log.readAll());
      expect(all).toEqual(await eventsOf(log.readStream(stream)));
      expect(all).toHaveLength(events);
    };
    for (const data of odd) {
      put(data, 3);
      await isReadAlike(4);
      file.exec('DELETE FROM events WHERE position > 3');
    }
    odd.forEach((data, i) => put(data, 3 + i));
    await isReadAlike(3 + odd.length);
  });

  it('keeps no page in memory for a caller that keeps a stream name from it', async () => {
    const folder = freshFolder();
    await openLog(folder);
    const file = openFile(folder);
    file.exec(`BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40960)
      INSERT INTO events (stream, revision, id, type, data, metadata, recorded_at)
      SELECT 'tenant-of-nobody-' || (i / 512), i, 'some-event-that-has-the-number-' || i, 'TypeNumber' || (i / 512),
        '{"a":"' || printf('%.1000c', 'x') || '"}', '{}', 0 FROM n; COMMIT`);
    const thread = new Worker(join(__dirname, '..', 'support', 'keeping-thread.js'), {
      workerData: folder,
      resourceLimits: { maxOldGenerationSizeMb: 24, maxYoungGenerationSizeMb: 8 },
    });
    // Both may arrive before anything else happens.
    const ended = once(thread, 'exit');
    const [kept] = (await once(thread, 'message')) as [number];
    expect(kept).toBeGreaterThanOrEqual(3 * 80);
    await ended;
  });

  it('recreates its index if it was dropped', async () => {
    const folder = freshFolder();
    await (await openLog(folder)).close();
    const file = openFile(folder);
    const indexes = () => file.prepare(`SELECT name FROM pragma_index_list('events') WHERE "unique"`).all();
    expect(indexes()).toEqual([{ name: 'events_by_stream' }]);
    file.exec('DROP INDEX events_by_stream');
    await openLog(folder);
    expect(indexes()).toEqual([{ name: 'events_by_stream' }]);
  });

  it('can be shared by several processes: no gap, nothing lost, no duplicates', async () => {
    const folder = freshFolder();
    const log = await openLog(folder);
    const stream = `tenant-${randomUUID()}`;
    const children = await Promise.all([1, 2].map(() => startProcess(folder, stream, 60)));
    const ids = await Promise.all([appendRacing(log, stream, 60), ...children.map(begin)]);
    const events = await eventsOf(log.readStream(stream));
    expect(events.map((event) => event.revision)).toEqual(Array.from({ length: 180 }, (_, i) => i));
    expect(idsOf(events).toSorted()).toEqual(ids.flat().toSorted());
  });

  it('is created once when many open a fresh folder at the same time', async () => {
    for (let round = 0; round < 3; round += 1) {
      const folder = freshFolder();
      const logs = await Promise.all(Array.from({ length: 6 }, () => openLog(folder)));
      const identities = await Promise.all(logs.map((log) => log.identity()));
      expect(new Set(identities).size).toBe(1);
      for (const log of logs) await log.close();
    }
  });

  it("notices another process's appends", async () => {
    const folder = freshFolder();
    const log = await openLog(folder);
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

  it('leaves no read open when a batch is abandoned, so that the WAL can be checkpointed', async () => {
    const folder = freshFolder();
    const log = await openLog(folder);
    const tenantId = randomUUID();
    await log.append(`tenant-${tenantId}`, someEvents(900), 'no_stream');
    for await (const _ of log.readAll()) break;
    for await (const _ of log.readStream(`tenant-${tenantId}`)) break;
    for await (const _ of log.readTenant(tenantId)) break;
    const tidied = openFile(folder).prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    expect(tidied).toMatchObject({ busy: 0, log: 0 });
  });

  describe('while another connection holds the lock', () => {
    const locked = async (inThread = true) => {
      const folder = freshFolder();
      const file = join(__dirname, '..', 'support', 'appender-thread.js');
      const appender = (of: AppenderFile) => startThread(file, of);
      const log = await sqliteEventLog(folder, streamNames(), inThread ? { appender } : {});
      closeAfterwards(log.close);
      const stream = `tenant-${randomUUID()}`;
      await log.append(stream, someEvents(1), 'no_stream');
      const db = openFile(folder);
      db.exec('BEGIN IMMEDIATE');
      return { log, stream, release: () => db.exec('ROLLBACK') };
    };

    it.each([
      ['a thread of its own', true],
      ['a command', false],
    ])('reports that it is unavailable, and works again afterwards: %s', async (_, inThread) => {
      const { log, stream, release } = await locked(inThread);
      expect(await refusedWith(log.append(stream, someEvents(1), 0))).toBe('log_unavailable');
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

    it('waits for a short lock', async () => {
      const { log, stream, release } = await locked();
      const appending = log.append(stream, someEvents(1), 0);
      const timer = setTimeout(release, 200);
      expect((await appending).revision).toBe(1);
      clearTimeout(timer);
    });
  });

  it.each(['create', 'write', 'read'] as const)(
    'refuses any other format when it opens a log to %s',
    async (opening) => {
      const folder = freshFolder();
      await (await openLog(folder)).close();
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
    const log = await openLog(folder);
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

  it('reads a tenant from any position, even if revisions are missing from the file', async () => {
    const [folder, tenantId, streams] = [freshFolder(), randomUUID(), streamNames()];
    const log = await openLog(folder);
    await log.append(streams.tenant(tenantId), someEvents(12), 'no_stream');
    openFile(folder).prepare('DELETE FROM events WHERE revision IN (0, 3, 4, 5, 8, 9)').run();
    const all = await eventsOf(log.readTenant(tenantId));
    expect(all.map(({ revision }) => revision)).toEqual([1, 2, 6, 7, 10, 11]);
    for (let position = 1; position <= 12; position += 1) {
      const after = String(position).padStart(16, '0');
      const expected = all.filter((event) => event.position > after);
      expect(await eventsOf(log.readTenant(tenantId, { after }))).toEqual(expected);
    }
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
        (error: unknown) => (error as { code?: string }).code,
      );
      expect([name, outcome]).toEqual([name, 'log_unavailable']);
    }
  });

  it('can read a tenant again after a failed read', async () => {
    const folder = freshFolder();
    const log = await openLog(folder);
    const [broken, sound] = [randomUUID(), randomUUID()];
    await log.append(`tenant-${broken}`, [anEvent()], 'no_stream');
    await log.append(`tenant-${sound}`, [anEvent()], 'no_stream');
    openFile(folder).exec('UPDATE events SET recorded_at = 9000000000000000 WHERE position = 1');
    await expect(eventsOf(log.readTenant(broken))).rejects.toThrow('Invalid time value');
    await log.append(`activity-${sound}`, [anEvent()], 'no_stream');
    expect(await eventsOf(log.readTenant(sound))).toHaveLength(2);
  });
});
