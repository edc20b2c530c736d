import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FIRST_FORMAT, NEWEST_FORMAT } from '../../domain/formats';
import { codeOf, fault, type Fault } from '../../fault';
import { inTransaction, migrate, openForReading, openForWriting, type Database } from '../../sqlite/database';
import { prefixOf } from '../streams';

/** The file of a log: how it is found and created, and its schema. */

export const LOG_FILE = 'events.db';

export const logPath = (folder: string): string => join(folder, LOG_FILE);

const STREAM_INDEX = 'CREATE UNIQUE INDEX IF NOT EXISTS events_by_stream ON events (stream, revision)';

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

const START_OVER =
  'To start with an empty log instead, move its remains and the folder read-models out of the way.';

const incomplete = (what: string, remedy: string): Fault =>
  fault('log_incomplete', `The event log is not complete: ${what}. ${remedy} ${START_OVER}`);

/** The name of a log while a backup is being restored. */
export const restoringOf = (path: string): string => `${path}.restoring`;

/**
 * Throws if there are only parts of a log. A log may only be created where there is no trace of one: a log that was
 * lost, partially copied or not yet restored must never look like a first start. Looks for the other files first, since
 * they are created after the log, or removed after it got its name.
 */
export const findLog = (path: string): 'found' | 'absent' => {
  const restoring = restoringOf(path);
  const left = [restoring, ...['-wal', '-shm', '-journal'].map((end) => path + end)].find(existsSync);
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size !== undefined && size > 0) return 'found';
  if (size === 0) throw incomplete(`${path} is empty`, 'Restore it from a backup.');
  if (left === restoring)
    throw incomplete(
      `a backup is being restored, or its restore was interrupted (${restoring} is there)`,
      'Wait until it ends. If it was interrupted, empty the folder and run `tenant-ledger backup restore` again.',
    );
  if (left !== undefined)
    throw incomplete(`${path} is missing, but ${left} is there`, 'Restore the missing file.');
  return 'absent';
};

export const logMissing = (path: string): Fault =>
  incomplete(`the folder has read models, but ${path} is missing`, 'Restore it from a backup.');

const mustHaveTables = (db: Database, path: string): void => {
  const tables = db.prepare(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('events', 'meta')`,
  );
  if (tables.all().length < 2)
    throw incomplete(
      `${path} has no tables; perhaps it was copied without ${path}-wal`,
      'Restore both files from the same backup.',
    );
};

/** What a log stores about itself. */
export const metaIn = (
  db: Database,
  name: 'identity' | 'prefix' | 'format' | 'backup',
  file = 'main',
): string | undefined =>
  (db.prepare(`SELECT value FROM ${file}.meta WHERE name = ?`).get(name) as { value: string } | undefined)
    ?.value;

/** The stored prefix. Earlier programs did not store it, but the first tenant's stream shows it. */
const prefixIn = (db: Database): string | undefined => {
  const stored = metaIn(db, 'prefix');
  if (stored !== undefined) return stored;
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

/** Throws unless this is a complete log with this prefix. Changes nothing, since the connection is read-only. */
export const mustBeOurLog = (path: string, prefix: string): void => {
  const db = openForReading(path);
  try {
    mustHaveTables(db, path);
    mustHavePrefix(db, path, prefix);
  } finally {
    db.close();
  }
};

/** A log without a format was created by a program without formats. */
export const formatIn = (db: Database): number => Number(metaIn(db, 'format') ?? FIRST_FORMAT);

export const raiseFormatIn = (db: Database, to: number): void =>
  inTransaction(db, () => {
    if (formatIn(db) < to) db.prepare(`INSERT OR REPLACE INTO meta VALUES ('format', ?)`).run(String(to));
  });

/** Stores the identity, prefix and format of a new log. */
const writeIdentity = (db: Database, path: string, prefix: string, format: number): void => {
  if (metaIn(db, 'identity') !== undefined && metaIn(db, 'prefix') !== undefined)
    return mustHavePrefix(db, path, prefix);
  inTransaction(db, () => {
    mustHavePrefix(db, path, prefix);
    const put = db.prepare('INSERT OR IGNORE INTO meta VALUES (?, ?)');
    if (put.run('identity', randomUUID()).changes > 0) put.run('format', String(format));
    put.run('prefix', prefix);
  });
};

/** Creates what is missing. */
const createTables = (db: Database, path: string): void => {
  migrate(db, schema, `The event log ${path}`);
  // In case someone dropped it: everything works without it, only slowly.
  db.exec(STREAM_INDEX);
};

/** Opens a log for writing, and creates it in the file if there is none. */
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

/** Makes what was written survive a power loss; for a folder, its entries. */
const syncFile = (path: string): void => {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/** Writes a file under a temporary name, and gives it its own when it is complete, even across a power loss. */
export const placeFile = <T>(temporary: string, path: string, write: () => T, place = linkSync): T => {
  try {
    const written = write();
    syncFile(temporary);
    place(temporary, path);
    syncFile(dirname(path));
    return written;
  } finally {
    rmSync(temporary, { force: true });
  }
};

/** If several processes create a file at once, the first wins. */
export const putFile = (path: string, write: (temporary: string) => void): void => {
  const temporary = `${path}.${randomUUID()}`;
  try {
    placeFile(temporary, path, () => write(temporary));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
};

/**
 * Created in memory, because SQLite identifies files by inode: if this process had the file open under a temporary
 * name, its connections would keep using that name's `-shm` file, while other processes would not.
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
 * Creates a log where there is none. The file gets its name only when it is complete, so one without tables is never
 * just being created.
 */
export const createLog = (path: string, prefix: string, format: number): void =>
  putFile(path, (temporary) => writeEmptyLog(temporary, prefix, format));

const idOf = (path: string): string | undefined => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev} ${found.ino}`;
};

/**
 * For a file that was just opened: whether the path still names it. A file that was replaced or removed can still be
 * written to, but is lost once it is closed.
 */
export const stillThere = (path: string): (() => boolean) => {
  const opened = idOf(path);
  return () => idOf(path) === opened;
};
