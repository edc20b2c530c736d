import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf, fault, type Fault } from '../../fault';
import { inTransaction, migrate, openForReading, openForWriting, type Database } from '../../sqlite/database';
import { prefixOf } from '../streams';

/** The file of a log: what is found where one should be, its schema, and how it is made. */

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
   CREATE UNIQUE INDEX events_by_stream ON events (stream, revision);
   CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;`,
];

/**
 * The column for the log's own time of an event that came with a later one. Earlier programs made logs without it and work
 * beside it: they name the columns that they write and read.
 */
export const hasStoredAt = (db: Database): boolean =>
  db.prepare(`SELECT 1 FROM pragma_table_info('events') WHERE name = 'stored_at'`).get() !== undefined;

const haveStoredAt = (db: Database): void => {
  if (hasStoredAt(db)) return;
  inTransaction(db, () => {
    if (!hasStoredAt(db)) db.exec('ALTER TABLE events ADD COLUMN stored_at INTEGER');
  });
};

const sizeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

const BEGIN_ANEW =
  'To begin with an empty log instead, move what is left of it, and the folder read-models, out of the way.';

const incomplete = (what: string, remedy: string): Fault =>
  fault('log_incomplete', `The event log is not complete: ${what}. ${remedy} ${BEGIN_ANEW}`);

/**
 * The file is there, or nothing is. Only a place without any trace of a log is one where a log can be made: a log that was
 * lost or copied in part must never look like a first start. The `-wal` file is looked for first: whoever makes a log makes
 * it second.
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

/** The prefix that is kept with the log. One that an earlier program made keeps none: there its first stream tells. */
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

/** Refuses what is no whole log of this prefix. It changes nothing: a read-only connection neither makes nor tidies. */
export const mustBeOurLog = (path: string, prefix: string): void => {
  const db = openForReading(path);
  try {
    mustHaveTables(db, path);
    mustHavePrefix(db, path, prefix);
  } finally {
    db.close();
  }
};

/** Says in the log which one it is, unless it says so already. */
const introduce = (db: Database, path: string, prefix: string): void => {
  const said = db.prepare(`SELECT count(*) AS rows FROM meta WHERE name IN ('identity', 'prefix')`);
  if ((said.get() as { rows: number }).rows === 2) return mustHavePrefix(db, path, prefix);
  inTransaction(db, () => {
    mustHavePrefix(db, path, prefix);
    const say = db.prepare('INSERT OR IGNORE INTO meta VALUES (?, ?)');
    say.run('identity', randomUUID());
    say.run('prefix', prefix);
  });
};

/** A writing connection to a log, which is made in the file if that has none. */
export const openForAppending = (path: string, prefix: string): Database => {
  const db = openForWriting(path, 'FULL');
  try {
    migrate(db, schema, `The event log ${path}`);
    introduce(db, path, prefix);
    haveStoredAt(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

/** What has been written stays through a loss of power; of a folder: the names in it. */
const sync = (path: string): void => {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/**
 * It is made in memory. SQLite knows files by their inode: one that a connection of this process has open under
 * another name would share that name's `-shm` file, and other processes would not.
 */
const writeEmptyLog = (path: string, prefix: string): void => {
  const db = openForAppending(':memory:', prefix);
  try {
    db.prepare('VACUUM INTO ?').run(path);
  } finally {
    db.close();
  }
};

/**
 * Makes a log where there is none. It gets its name when it is complete: so a file of that name without tables is never
 * one that was just being made. Of several that make it at once, one wins.
 */
export const makeLog = (path: string, prefix: string): void => {
  const mine = `${path}.${randomUUID()}`;
  try {
    writeEmptyLog(mine, prefix);
    sync(mine);
    linkSync(mine, path);
    sync(dirname(path));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(mine, { force: true });
  }
};
