import { DatabaseSync } from '@photostructure/sqlite';
import { spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  cpSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { EventLog } from '../../src/event-log/event-log';
import { createBackup, verifyBackup } from '../../src/event-log/sqlite/backup';
import { restoreBackup } from '../../src/event-log/sqlite/restore';
import { openForAppending } from '../../src/event-log/sqlite/log-file';
import { sqliteEventLog } from '../../src/event-log/sqlite/sqlite-event-log';
import { streamNames } from '../../src/event-log/streams';
import { verifyLog } from '../../src/event-log/verify-log';
import { closeAfterwards } from '../support/closing';
import { fillBusyLog } from '../support/busy-log';
import { makeReadOnly, onDisk, whyNoDisks } from '../support/disks';
import { someEvents } from '../support/events';
import { freshFolder } from '../support/folders';
import { itIf } from '../support/it-if';

/** `npm run campaign -- backup` makes twenty. */
const BACKUPS = Number(process.env['BACKUPS'] ?? 3);
const WRITERS = 64;
/** How often each writer has appended when a backup starts. */
const APPENDS = BACKUPS;

const streams = streamNames();
const silent = (): void => undefined;

const open = async (folder: string): Promise<EventLog> => {
  const log = await sqliteEventLog(folder, streams);
  // Also if the test fails: its writers would keep the process alive.
  closeAfterwards(log.close);
  return log;
};

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

const RESTORING = 'events.db.restoring';

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

/** Everything that a log stores of an event. */
const columns = (() => {
  const db = openForAppending(':memory:', '');
  const found = db.prepare(`SELECT name, type FROM pragma_table_info('events')`).all();
  db.close();
  return found as unknown as readonly { readonly name: string; readonly type: string }[];
})();

/** The names of all files in a folder, and their bytes. */
const contentsOf = (folder: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(folder).map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  );

/** A log, and a finished backup of it. */
const backedUp = async (count: number): Promise<{ source: string; backup: string }> => {
  const [source, backup] = [await withLog(count), freshFolder()];
  await createBackup(source, backup, silent);
  return { source, backup };
};

let finished: ReturnType<typeof backedUp> | undefined;
/** A copy of a finished backup of 30 events. */
const newBackup = async (): Promise<string> => {
  finished ??= backedUp(30);
  const copy = freshFolder();
  cpSync((await finished).backup, copy, { recursive: true });
  return copy;
};

/** One whose next run was killed while it was writing. */
const killedBackup = async (): Promise<string> => {
  const backup = await newBackup();
  const program = `
    const { DatabaseSync } = require(${JSON.stringify(require.resolve('@photostructure/sqlite'))});
    const db = new DatabaseSync(${JSON.stringify(join(backup, 'events.db'))});
    db.exec(\`PRAGMA cache_size = 5; BEGIN; UPDATE events SET data = hex(zeroblob(4000))\`);
    process.kill(process.pid, 'SIGKILL');`;
  spawnSync(process.execPath, ['-e', program]);
  expect(readdirSync(backup)).toContain('events.db-journal');
  return backup;
};

/** A disk that does not keep what was written. */
const spoil = (path: string): void => {
  const bytes = readFileSync(path);
  const file = openSync(path, 'r+');
  for (let at = bytes.indexOf('TokenCreated'); at >= 0; at = bytes.indexOf('TokenCreated', at + 1))
    writeSync(file, 'X', at);
  closeSync(file);
};

const readable: readonly (readonly [string, () => Promise<string>])[] = [
  ['as it is made', newBackup],
  ['whose next run was killed', killedBackup],
];

describe('a finished backup', () => {
  const expectWhole = async (backup: string): Promise<void> => {
    const before = contentsOf(backup);
    const target = freshFolder();
    expect(await verifyBackup(backup, silent)).toMatchObject({ events: 30 });
    const restored = await restoreBackup(backup, target, silent);
    expect(contentsOf(backup)).toEqual(before);
    expect(Object.keys(contentsOf(target))).toEqual(['events.db']);
    const { events, found, identity } = await verified(target);
    expect({ events, found, identity }).toEqual({ events: 30, found: 0, identity: restored.identity });
  };

  it.each(readable)('%s is verified and restored, and nothing is written into its folder', async (_, make) =>
    expectWhole(await make()),
  );

  for (const [name, make] of readable)
    itIf(whyNoDisks === '', whyNoDisks)(`${name} is verified and restored from a read-only disk`, () =>
      onDisk('size=16m', async (disk) => {
        cpSync(await make(), disk, { recursive: true });
        makeReadOnly(disk);
        expect(() => writeFileSync(join(disk, 'x'), '')).toThrow('EROFS');
        await expectWhole(disk);
      }),
    );
});

describe('a restore', () => {
  it.each(['events.db', 'events.db-wal', 'events.db-shm', 'secret'])(
    'overwrites nothing if %s appears in the folder meanwhile',
    async (name) => {
      const [backup, target] = [await newBackup(), freshFolder()];
      const restoring = restoreBackup(backup, target, () => writeFileSync(join(target, name), 'mine'));
      await expect(restoring).rejects.toThrow(`contains ${name}`);
      expect(readdirSync(target)).toEqual([name]);
      expect(readFileSync(join(target, name), 'utf8')).toBe('mine');
    },
  );

  it('is refused while another one into the same folder is in progress, and does not disturb it', async () => {
    const [backup, target] = [await newBackup(), freshFolder()];
    let second: Promise<unknown> | undefined;
    const first = restoreBackup(backup, target, () => {
      second ??= restoreBackup(backup, target, silent).catch((error: unknown) => error);
    });
    expect(await first).toMatchObject({ events: 30 });
    expect(await second).toEqual(refusal('restore_refused'));
    expect(await verified(target)).toMatchObject({ events: 30, found: 0 });
  });

  it('is verified in the file that it wrote', async () => {
    const [backup, target] = [await newBackup(), freshFolder()];
    const restoring = restoreBackup(backup, target, (step) => {
      if (step === 'copying') spoil(join(target, RESTORING));
    });
    await expect(restoring).rejects.toThrow(`${RESTORING} are not those that were backed up`);
    expect(readdirSync(target)).toEqual([]);
  });

  it('killed at its very end, when the log has both names, is complete and never repeated', async () => {
    const [backup, target] = [await newBackup(), freshFolder()];
    await restoreBackup(backup, target, silent);
    linkSync(join(target, 'events.db'), join(target, RESTORING));
    await expect(restoreBackup(backup, target, silent)).rejects.toThrow('contains events.db');
    expect(await verified(target)).toMatchObject({ events: 30, found: 0 });
  });

  it('leaves a log alone that was moved away after such a kill', async () => {
    const [backup, target, elsewhere] = [await newBackup(), freshFolder(), freshFolder()];
    await restoreBackup(backup, target, silent);
    linkSync(join(target, 'events.db'), join(target, RESTORING));
    const log = await open(target);
    await log.append(streams.tenant(randomUUID()), someEvents(5), 'no_stream');
    await log.close();
    for (const name of readdirSync(target).filter((one) => one !== RESTORING))
      renameSync(join(target, name), join(elsewhere, name));
    expect(await restoreBackup(backup, target, silent)).toMatchObject({ events: 30 });
    expect(await verified(target)).toMatchObject({ events: 30 });
    expect(await verified(elsewhere)).toMatchObject({ events: 35 });
  });

  it('continues over the remains of an interrupted one, and says which of them it cannot use', async () => {
    const [backup, target] = [await newBackup(), freshFolder()];
    cpSync(join(await withLog(5), 'events.db'), join(target, RESTORING));
    expect(await restoreBackup(backup, target, silent)).toMatchObject({ events: 30 });
    expect(await verified(target)).toMatchObject({ events: 30, found: 0 });
    const damaged = freshFolder();
    writeFileSync(join(damaged, RESTORING), 'x'.repeat(8_192));
    await expect(restoreBackup(backup, damaged, silent)).rejects.toThrow(
      `Remove ${join(damaged, RESTORING)}`,
    );
  });
});

describe('a backup of a log in a folder', () => {
  it(
    `is complete and exact while ${WRITERS} writers append, ${BACKUPS} times into one folder (npm run campaign -- backup)`,
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
    const { source, backup } = await backedUp(300);
    const log = await open(source);
    await fillBusyLog({ log, streams }, 2_500);
    await log.close();
    const killed = createBackup(source, backup, (step) => {
      if (step === 'verifying') throw new Error('killed');
    });
    await expect(killed).rejects.toThrow('killed');

    const target = freshFolder();
    expect(await restoreBackup(backup, target, silent)).toMatchObject({ events: 300 });
    expect(await verified(target)).toMatchObject({ events: 300, found: 0 });
    let copiedAgain = 0;
    const resumed = createBackup(source, backup, (step, done) => {
      if (step === 'copying') copiedAgain += done;
    });
    expect(await resumed).toMatchObject({ events: 2_800, added: 2_500 });
    expect(copiedAgain).toBe(0);
    const { lastRecordedAt } = await resumed;
    expect(await createBackup(source, backup, silent)).toMatchObject({
      events: 2_800,
      added: 0,
      lastRecordedAt,
    });
    const whole = freshFolder();
    await restoreBackup(backup, whole, silent);
    expect((await verified(whole)).digest).toBe((await verified(source)).digest);
  });

  it('is not finished unless the disk has what was written, and the next one copies it again', async () => {
    const [source, backup] = [await withLog(20), freshFolder()];
    const spoiled = createBackup(source, backup, (step) => {
      if (step === 'copying') spoil(join(backup, 'events.db'));
    });
    await expect(spoiled).rejects.toThrow('not written as they are in the log');
    await expect(verifyBackup(backup, silent)).rejects.toThrow('was not finished');
    expect(await createBackup(source, backup, silent)).toMatchObject({ events: 20, added: 20 });
    expect(await verifyBackup(backup, silent)).toMatchObject({ events: 20 });
  });

  it('is not continued while it is being verified', async () => {
    const { source, backup } = await backedUp(20);
    let beside: Promise<unknown> | undefined;
    await verifyBackup(backup, () => {
      beside ??= createBackup(source, backup, silent).catch((error: unknown) => error);
    });
    expect(await beside).toMatchObject({
      code: 'backup_unusable',
      message: expect.stringContaining('in use'),
    });
    expect(await createBackup(source, backup, silent)).toMatchObject({ events: 20 });
  });

  it('that has lost its events is not continued', async () => {
    const { source, backup } = await backedUp(20);
    edit(backup, 'DELETE FROM events WHERE position < 5');
    await expect(createBackup(source, backup, silent)).rejects.toEqual(refusal('backup_unusable'));
  });

  it('is written by one at a time: a second one, a verification and a restore are refused meanwhile', async () => {
    const { source, backup } = await backedUp(20);
    await fillBusyLog({ log: await open(source), streams }, 20);
    const others: Promise<unknown>[] = [];
    const made = await createBackup(source, backup, () => {
      if (others.length > 0) return;
      for (const other of [
        createBackup(source, backup, silent),
        verifyBackup(backup, silent),
        restoreBackup(backup, freshFolder(), silent),
      ])
        others.push(other.catch((error: unknown) => error));
    });
    expect(made).toMatchObject({ events: 40, added: 20 });
    for (const refused of await Promise.all(others))
      expect(refused).toMatchObject({
        code: 'backup_unusable',
        message: expect.stringContaining('is in use'),
      });
    expect(await verifyBackup(backup, silent)).toMatchObject({ events: 40 });
  });

  it.each<readonly [string, string]>([
    ...columns.map(({ name, type }): readonly [string, string] => [
      `another ${name} of an event`,
      `UPDATE events SET ${name} = ${type === 'TEXT' ? `${name} || ' '` : `ifnull(${name}, 0) + 1000`} WHERE position = 7`,
    ]),
    ['a removed event', 'DELETE FROM events WHERE position = 7'],
    ['a removed last event', 'DELETE FROM events WHERE position = (SELECT max(position) FROM events)'],
    [
      'another order',
      'UPDATE events SET position = -1 WHERE position = 7; UPDATE events SET position = 7 WHERE position = 8; UPDATE events SET position = 8 WHERE position = -1',
    ],
    ['another identity', `UPDATE meta SET value = 'x' WHERE name = 'identity'`],
  ])('with %s is refused, and nothing is restored', async (_, sql) => {
    const [backup, target] = [await newBackup(), freshFolder()];
    edit(backup, sql);
    await expect(verifyBackup(backup, silent)).rejects.toEqual(refusal('backup_unusable'));
    await expect(restoreBackup(backup, target, silent)).rejects.toEqual(refusal('backup_unusable'));
    expect(readdirSync(target)).toEqual([]);
  });

  it('with an altered manifest, or a file that is not a database, is refused', async () => {
    const backup = await newBackup();
    const manifest = join(backup, 'manifest.json');
    const text = readFileSync(manifest, 'utf8');
    for (const altered of [
      text.replace(/"chain": "./, '"chain": "z'),
      text.replace('"events": 30', '"events": 29'),
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

  it('is never continued with another log, with one that was rolled back, or in a folder of something else', async () => {
    const { source, backup } = await backedUp(30);
    await expect(createBackup(await withLog(40), backup, silent)).rejects.toThrow(
      'a backup of another event log',
    );
    const older = freshFolder();
    cpSync(source, older, { recursive: true });
    edit(older, 'DELETE FROM events WHERE position > 25');
    await expect(createBackup(older, backup, silent)).rejects.toThrow('it was changed or rolled back');
    const other = freshFolder();
    writeFileSync(join(other, 'notes.txt'), '');
    await expect(createBackup(source, other, silent)).rejects.toThrow('contains notes.txt and no backup');
    await expect(createBackup(source, source, silent)).rejects.toThrow('contains events.db and no backup');
    expect(await verifyBackup(backup, silent)).toMatchObject({ events: 30 });
  });
});
