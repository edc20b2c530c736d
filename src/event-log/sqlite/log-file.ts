import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { FIRST_FORMAT, NEWEST_FORMAT } from '../../domain/formats';
import { codeOf, fault, type Fault } from '../../fault';
import { inTransaction, migrate, openForReading, openForWriting, type Database } from '../../sqlite/database';
import { prefixOf } from '../streams';

/** The file of a log: what is found where it should be, its schema, and how it is created. */

const STREAM_INDEX = 'CREATE UNIQUE INDEX events_by_stream ON events (stream, revision)';

const schema = [
  `CREATE TABLE events (
     position INTEGER PRIMARY KEY,
     stream TEXT NOT NULL,
     revision INTEGER NOT NULL,
     id TEXT NOT NULL,
     type TEXT NOT NULL,
     data TEXT NOT NULL,
     metadata TEXT NOT NULL,
     recorded_at INTEGER NOT NULL
   );
   ${STREAM_INDEX};
   CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;`,
];

/**
 * The column for the time at which the log received an event, if the event came with a later one. Earlier programs created
 * logs without it and work with it: they name the columns that they write and read.
 */
export const hasStoredAt = (db: Database): boolean =>
  db.prepare(`SELECT 1 FROM pragma_table_info('events') WHERE name = 'stored_at'`).get() !== undefined;

const addStoredAt = (db: Database): void => {
  if (hasStoredAt(db)) return;
  inTransaction(db, () => {
    if (!hasStoredAt(db)) db.exec('ALTER TABLE events ADD COLUMN stored_at INTEGER');
  });
};

/** Everything works without it, only slowly; somebody has dropped it. */
const addStreamIndex = (db: Database): void => {
  const isThere = db.prepare(
    `SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'events_by_stream'`,
  );
  if (isThere.get() !== undefined) return;
  inTransaction(db, () => {
    if (isThere.get() === undefined) db.exec(STREAM_INDEX);
  });
};

const sizeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

const BEGIN_ANEW =
  'To begin with an empty log instead, move what is left of it, and the folder read-models, out of the way.';

const incomplete = (what: string, remedy: string): Fault =>
  fault('log_incomplete', `The event log is not complete: ${what}. ${remedy} ${BEGIN_ANEW}`);

/**
 * The file is there, or nothing is. A log may only be created where there is no trace of one: a log that was lost or copied
 * in part must never look like a first start. The `-wal` file is checked first, since it is created after the log.
 */
export const findLog = (path: string): 'found' | 'absent' => {
  const walSize = sizeOf(`${path}-wal`) ?? 0;
  const size = sizeOf(path);
  if (size !== undefined && size > 0) return 'found';
  if (size === 0) throw incomplete(`${path} is empty`, 'Restore it from a backup.');
  if (walSize > 0)
    throw incomplete(`${path} is missing, but ${path}-wal is there`, 'Restore the missing file.');
  return 'absent';
};

export const logMissing = (path: string): Fault =>
  incomplete(`the folder has read models, but ${path} is missing`, 'Restore it from a backup.');

const hasTables = (db: Database): boolean =>
  (
    db
      .prepare(
        `SELECT count(*) AS found FROM sqlite_master WHERE type = 'table' AND name IN ('events', 'meta')`,
      )
      .get() as { found: number }
  ).found === 2;

const mustHaveTables = (db: Database, path: string): void => {
  if (!hasTables(db))
    throw incomplete(
      `${path} has no tables; perhaps it was copied without ${path}-wal`,
      'Restore both files from the same backup.',
    );
};

/** The prefix that is stored in the log. Earlier programs did not store it: there the first stream shows it. */
const prefixIn = (db: Database): string | undefined => {
  const kept = db.prepare(`SELECT value FROM meta WHERE name = 'prefix'`).get() as
    { value: string } | undefined;
  if (kept !== undefined) return kept.value;
  for (const row of db.prepare('SELECT stream FROM events ORDER BY position').iterate()) {
    const prefix = prefixOf((row as { stream: string }).stream);
    if (prefix !== undefined) return prefix;
  }
  return undefined;
};

const mustHavePrefix = (db: Database, path: string, prefix: string): void => {
  const found = prefixIn(db);
  if (found === undefined || found === prefix) return;
  throw fault(
    'log_of_another_prefix',
    `The streams of the event log ${path} have the prefix "${found}", but STREAM_PREFIX is "${prefix}". ${found === '' ? 'Leave STREAM_PREFIX empty' : `Set STREAM_PREFIX=${found}`}, or name another DATA_DIR.`,
    { found, path },
  );
};

/** Refuses anything but a whole log of this prefix. It changes nothing: a read-only connection neither creates nor checkpoints. */
export const mustBeOurLog = (path: string, prefix: string): void => {
  const db = openForReading(path);
  try {
    mustHaveTables(db, path);
    mustHavePrefix(db, path, prefix);
  } finally {
    db.close();
  }
};

/** Nothing about it in the log: it was made by a program without formats. */
export const formatIn = (db: Database): number =>
  Number(
    (db.prepare(`SELECT value FROM meta WHERE name = 'format'`).get() as { value: string } | undefined)
      ?.value ?? FIRST_FORMAT,
  );

export const raiseFormatIn = (db: Database, to: number): void =>
  inTransaction(db, () => {
    if (formatIn(db) < to) db.prepare(`INSERT OR REPLACE INTO meta VALUES ('format', ?)`).run(String(to));
  });

/** Writes the identity, the prefix and the format of a new log into it. */
const writeIdentity = (db: Database, path: string, prefix: string, format: number): void => {
  const known = db.prepare(`SELECT count(*) AS rows FROM meta WHERE name IN ('identity', 'prefix')`);
  if ((known.get() as { rows: number }).rows === 2) return mustHavePrefix(db, path, prefix);
  inTransaction(db, () => {
    mustHavePrefix(db, path, prefix);
    const put = db.prepare('INSERT OR IGNORE INTO meta VALUES (?, ?)');
    if (put.run('identity', randomUUID()).changes > 0) put.run('format', String(format));
    put.run('prefix', prefix);
  });
};

/** Where they are missing. */
export const createTables = (db: Database, path: string): void => {
  migrate(db, schema, `The event log ${path}`);
  addStoredAt(db);
  addStreamIndex(db);
};

/** A writing connection to a log, which is created in the file if there is none. */
export const openForAppending = (path: string, prefix: string, format = NEWEST_FORMAT): Database => {
  const db = openForWriting(path, 'FULL');
  try {
    createTables(db, path);
    writeIdentity(db, path, prefix, format);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

/** Makes what was written survive a loss of power; for a folder, the names in it. */
export const syncFile = (path: string): void => {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/**
 * Created in memory. SQLite knows files by their inode: a file that a connection of this process has open under another
 * name would share that name's `-shm` file, and other processes would not.
 */
const writeEmptyLog = (path: string, prefix: string, format: number): void => {
  const db = openForAppending(':memory:', prefix, format);
  try {
    db.prepare('VACUUM INTO ?').run(path);
  } finally {
    db.close();
  }
};

/**
 * Creates a log where there is none. It gets its name when it is complete, so a file of that name without tables is never
 * one that is just being created. If several processes create it at once, one wins.
 */
export const makeLog = (path: string, prefix: string, format: number): void => {
  const mine = `${path}.${randomUUID()}`;
  try {
    writeEmptyLog(mine, prefix, format);
    syncFile(mine);
    linkSync(mine, path);
    syncFile(dirname(path));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(mine, { force: true });
  }
};

const idOf = (path: string): string | undefined => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev} ${found.ino}`;
};

/**
 * For a file that was just opened: is it still what the path names? A file that was replaced or removed can still be
 * written, but is lost when it is closed.
 */
export const stillThere = (path: string): (() => boolean) => {
  const opened = idOf(path);
  return () => idOf(path) === opened;
};
