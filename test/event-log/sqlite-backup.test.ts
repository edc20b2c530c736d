import { DatabaseSync } from '@photostructure/sqlite';
import { randomUUID } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventLog } from '../../src/event-log/event-log';
import { createBackup, restoreBackup, verifyBackup } from '../../src/event-log/sqlite/backup';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { verifyLog } from '../../src/event-log/verify-log';
import { fillBusyLog } from '../support/busy-log';
import { freshFolder } from '../support/folders';

/** `npm run campaign:backup` makes twenty. */
const BACKUPS = Number(process.env['BACKUPS'] ?? 3);
const WRITERS = 64;
/** How often each writer has appended when a backup starts. */
const APPENDS = BACKUPS;

const streams = streamNames();
const silent = (): void => undefined;

const opened: EventLog[] = [];
const open = async (folder: string): Promise<EventLog> => {
  const log = await sqliteEventLog(folder, streams);
  opened.push(log);
  return log;
};
/** Also those of a test that failed: its writers would keep the process alive. */
afterEach(async () => {
  for (const log of opened.splice(0)) await log.close();
});

const withLog = async (count: number): Promise<string> => {
  const folder = freshFolder();
  const log = await open(folder);
  await fillBusyLog({ log, streams }, count);
  await log.close();
  return folder;
};

/** The result of `tenant-ledger log verify` for a folder. */
const verified = async (folder: string, earlier?: { events: number; digest: string }) => {
  const log = await open(folder);
  try {
    return await verifyLog({ log, streams }, { earlier, onProgress: silent });
  } finally {
    await log.close();
  }
};

const edit = (folder: string, sql: string): void => {
  const db = new DatabaseSync(join(folder, 'events.db'));
  db.exec(sql);
  db.close();
};

/** Appends to its own stream as fast as it can, whenever it is started. */
const writerTo = (log: EventLog) => {
  const stream = streams.activity(randomUUID());
  let revision = -1;
  const write = async (): Promise<void> => {
    const events = ['TokenCreated', 'TokenUsed'].map((type) => ({
      id: randomUUID(),
      type,
      data: { entityId: randomUUID() },
      metadata: { version: 1 },
    }));
    ({ revision } = await log.append(stream, events, revision < 0 ? 'no_stream' : revision, 30_000));
  };
  return {
    start: () => {
      let isStopped = false;
      const begun = (async () => {
        for (let appended = 0; appended < APPENDS; appended += 1) await write();
      })();
      const ended = begun.then(async () => {
        while (!isStopped) await write();
      });
      return {
        begun,
        stop: (): Promise<void> => {
          isStopped = true;
          return ended;
        },
      };
    },
  };
};

const refusal = (code: string) => expect.objectContaining({ code });

describe('a backup of a log in a folder', () => {
  it(
    `is complete and exact while ${WRITERS} writers append, ${BACKUPS} times into one folder (npm run campaign:backup)`,
    async () => {
      const [source, backup] = [freshFolder(), freshFolder()];
      const log = await open(source);
      const writers = Array.from({ length: WRITERS }, () => writerTo(log));
      const reached: number[] = [];
      for (let run = 0; run < BACKUPS; run += 1) {
        // They stop once the backup is made: while it is restored and compared, the log would grow without bound.
        const writing = writers.map((writer) => writer.start());
        await Promise.all(writing.map(({ begun }) => begun));
        const before = (await log.head())?.position ?? '';
        const made = await createBackup(source, backup, silent);
        await Promise.all(writing.map(({ stop }) => stop()));
        const after = (await log.head())?.position ?? '';
        expect((made.lastPosition ?? '') >= before).toBe(true);
        expect(after > (made.lastPosition ?? '')).toBe(true); // writes were in progress while it was made
        const target = freshFolder();
        expect(await restoreBackup(backup, target, silent)).toEqual({ ...made, added: undefined });
        const { found, events, digest, identity } = await verified(target);
        expect({ found, events, identity }).toEqual({
          found: 0,
          events: made.events,
          identity: made.identity,
        });
        expect(events % 2).toBe(0); // both events of an append, or none
        expect(await verified(source, { events, digest })).toMatchObject({ earlier: 'unchanged' });
        rmSync(target, { recursive: true });
        reached.push(events);
      }
      await log.close();
      console.log(`events in the backups: ${reached.join(' ')}`);
      expect(reached.toSorted((a, b) => a - b)).toEqual(reached);
      expect(new Set(reached).size).toBe(BACKUPS);
    },
    BACKUPS * 30_000,
  );

  it('resumes where it was killed, and is unchanged until then', async () => {
    const [source, backup] = [await withLog(300), freshFolder()];
    await createBackup(source, backup, silent);
    const log = await open(source);
    await fillBusyLog({ log, streams }, 2_500);
    await log.close();
    const killed = createBackup(source, backup, (done) => {
      if (done > 1_000) throw new Error('killed');
    });
    await expect(killed).rejects.toThrow('killed');

    const target = freshFolder();
    expect(await restoreBackup(backup, target, silent)).toMatchObject({ events: 300 });
    expect(await verified(target)).toMatchObject({ events: 300, found: 0 });
    expect(await createBackup(source, backup, silent)).toMatchObject({ events: 2_800, added: 2_500 });
    expect(await createBackup(source, backup, silent)).toMatchObject({ events: 2_800, added: 0 });
    const whole = freshFolder();
    await restoreBackup(backup, whole, silent);
    expect((await verified(whole)).digest).toBe((await verified(source)).digest);
  });

  it('that has lost its events is not continued', async () => {
    const [source, backup] = [await withLog(20), freshFolder()];
    await createBackup(source, backup, silent);
    edit(backup, 'DELETE FROM events WHERE position < 5');
    await expect(createBackup(source, backup, silent)).rejects.toEqual(refusal('backup_unusable'));
  });

  it('made twice into the same folder at the same time is refused once with a message, or complete both times', async () => {
    const [source, backup] = [await withLog(5_000), freshFolder()];
    let second: Promise<unknown> | undefined;
    const first = createBackup(source, backup, (done) => {
      if (done > 2_000) second ??= createBackup(source, backup, silent).catch((error: unknown) => error);
    }).catch((error: unknown) => error);
    for (const ended of [await first, await second])
      if (ended instanceof Error) expect(ended).toEqual(refusal('backup_unusable'));
      else expect(ended).toMatchObject({ events: 5_000 });
    await createBackup(source, backup, silent);
    expect(await verifyBackup(backup, silent)).toMatchObject({ events: 5_000 });
  });

  it.each([
    ['an altered event', `UPDATE events SET data = '{}' WHERE position = 7`],
    ['an altered time', 'UPDATE events SET recorded_at = recorded_at + 1 WHERE position = 7'],
    ['a removed event', 'DELETE FROM events WHERE position = 7'],
    ['a removed last event', 'DELETE FROM events WHERE position = (SELECT max(position) FROM events)'],
    [
      'another order',
      'UPDATE events SET position = -1 WHERE position = 7; UPDATE events SET position = 7 WHERE position = 8; UPDATE events SET position = 8 WHERE position = -1',
    ],
    ['another identity', `UPDATE meta SET value = 'x' WHERE name = 'identity'`],
  ])('with %s is refused, and nothing is restored', async (_, sql) => {
    const [source, backup, target] = [await withLog(20), freshFolder(), freshFolder()];
    await createBackup(source, backup, silent);
    edit(backup, sql);
    await expect(verifyBackup(backup, silent)).rejects.toEqual(refusal('backup_unusable'));
    await expect(restoreBackup(backup, target, silent)).rejects.toEqual(refusal('backup_unusable'));
    expect(readdirSync(target)).toEqual([]);
  });

  it('with an altered manifest, or a file that is not a database, is refused', async () => {
    const [source, backup] = [await withLog(20), freshFolder()];
    await createBackup(source, backup, silent);
    const manifest = join(backup, 'manifest.json');
    const text = readFileSync(manifest, 'utf8');
    for (const altered of [
      text.replace(/"sha256": "./, '"sha256": "z'),
      text.replace('"events": 20', '"events": 19'),
      '{}',
      'x',
    ]) {
      writeFileSync(manifest, altered);
      await expect(verifyBackup(backup, silent)).rejects.toEqual(refusal('backup_unusable'));
    }
    writeFileSync(manifest, text);
    writeFileSync(join(backup, 'events.db'), Buffer.alloc(8_192, 1));
    await expect(verifyBackup(backup, silent)).rejects.toEqual(refusal('backup_unusable'));
  });

  it('is never continued with another log, with one that was set back, or in a folder of something else', async () => {
    const [source, backup] = [await withLog(30), freshFolder()];
    await createBackup(source, backup, silent);
    await expect(createBackup(await withLog(40), backup, silent)).rejects.toThrow(
      'a backup of another event log',
    );
    const older = freshFolder();
    cpSync(source, older, { recursive: true });
    edit(older, 'DELETE FROM events WHERE position > 25');
    await expect(createBackup(older, backup, silent)).rejects.toThrow('it was changed or set back');
    const other = freshFolder();
    writeFileSync(join(other, 'notes.txt'), '');
    await expect(createBackup(source, other, silent)).rejects.toThrow('contains notes.txt and no backup');
    await expect(createBackup(source, source, silent)).rejects.toThrow('contains events.db and no backup');
    expect(await verifyBackup(backup, silent)).toMatchObject({ events: 30 });
  });

  it('can be restored only into an empty folder', async () => {
    const [source, backup] = [await withLog(10), freshFolder()];
    await createBackup(source, backup, silent);
    await expect(restoreBackup(backup, source, silent)).rejects.toEqual(refusal('restore_refused'));
  });
});
