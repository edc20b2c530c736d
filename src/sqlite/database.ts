import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs';
import { monotonicMs } from '../async/clock';
import { fault, messageOf } from '../fault';
import { TIMES } from '../times';

export type Database = DatabaseSyncInstance;

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const SQLITE_CONSTRAINT = 19;
const SQLITE_CANTOPEN = 14;
const SQLITE_IOERR_SHORT_READ = 522;

/** Another connection holds the lock. */
export const isBusy = (error: unknown): boolean =>
  (error as { errcode?: number } | undefined)?.errcode === SQLITE_BUSY;

/** There is a row with this key. */
export const isTaken = (error: unknown): boolean =>
  ((error as { errcode?: number } | undefined)?.errcode ?? 0) % 256 === SQLITE_CONSTRAINT;

/** The file is missing, cut off or overwritten, or lacks a table or the keys of one. Errors of the disk as such do not count. */
export const isDamagedFile = (error: unknown, path: string): boolean => {
  const { errcode, sqliteExtendedCode } = error as { errcode?: number; sqliteExtendedCode?: number };
  if (errcode === SQLITE_CANTOPEN) return !existsSync(path);
  // By their texts, because the driver does not give the code of an error in the middle of a result.
  const isDamage =
    /no such (table|column|index)|malformed|not a database|ON CONFLICT clause does not match/.test(
      messageOf(error),
    );
  return isDamage || sqliteExtendedCode === SQLITE_IOERR_SHORT_READ;
};

/** If several processes open a new file at once, SQLite fails all but one at once instead of waiting for the lock. */
const switchToWal = (db: Database): void => {
  const end = monotonicMs() + TIMES.noAnswerMs;
  const unsignalled = new Int32Array(new SharedArrayBuffer(4));
  for (;;)
    try {
      return db.exec('PRAGMA journal_mode = WAL');
    } catch (error) {
      if (!isBusy(error) || monotonicMs() > end) throw error;
      Atomics.wait(unsignalled, 0, 0, TIMES.busyRetryMs);
    }
};

/**
 * FULL: a commit is on disk when it returns. NORMAL: the file stays consistent, but a crash may lose the last commits.
 */
export const openForWriting = (path: string, synchronous: 'FULL' | 'NORMAL'): Database => {
  const db = new DatabaseSync(path, { timeout: TIMES.noAnswerMs });
  try {
    switchToWal(db);
    db.exec(`PRAGMA synchronous = ${synchronous}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
};

export const openForReading = (path: string): Database =>
  new DatabaseSync(path, { readOnly: true, timeout: TIMES.noAnswerMs });

export const closing = <T>(db: Database, work: (db: Database) => T): T => {
  try {
    return work(db);
  } finally {
    db.close();
  }
};

/** Reads the whole file. Undefined: it is sound. */
export const damageIn = (db: Database): string | undefined => {
  const { integrity_check: found } = db.prepare('PRAGMA integrity_check(1)').get() as Record<string, string>;
  return found === 'ok' ? undefined : found?.split('\n').at(-1);
};

export const damageOf = (path: string): string | undefined => {
  try {
    return closing(openForReading(path), damageIn);
  } catch (error) {
    return messageOf(error);
  }
};

/** For writers that try again themselves and do other work in the meantime. */
export const neverWait = (db: Database): void => db.exec('PRAGMA busy_timeout = 0');

/**
 * Closes a writing connection and leaves the file complete without its `-wal`, unless another process uses it. SQLite
 * does that on its own, but not while there are prepared statements, which the driver finalizes only at garbage
 * collection.
 */
export const checkpointAndClose = (db: Database): void => {
  try {
    neverWait(db);
    // The second one lets nobody write, so it should have nothing left to do.
    db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // Nothing is lost: the rest is in the -wal file.
  } finally {
    db.close();
  }
};

/**
 * Runs the work in a transaction that holds the file's write lock from the start. If the work throws, nothing was
 * written; nor if the disk is full at the commit, since its last frame is missing. After `commit_failed` that is not
 * certain: a commit whose sync failed is rolled back for all open connections, but it may be on disk and reappear after a
 * crash, until the next commit overwrites it.
 */
export const inTransaction = <T>(db: Database, work: () => T): T => {
  db.exec('BEGIN IMMEDIATE');
  let isDone = false;
  try {
    const result = work();
    isDone = true;
    db.exec('COMMIT');
    return result;
  } catch (error) {
    rollBack(db);
    if (!isDone || (error as { errcode?: number }).errcode === SQLITE_FULL) throw error;
    throw fault('commit_failed', `The commit failed: ${messageOf(error)}`);
  }
};

/** SQLite itself rolls back after some errors, and ROLLBACK may fail for the same reason as the work. */
const rollBack = (db: Database): void => {
  try {
    if (db.isTransaction) db.exec('ROLLBACK');
  } catch {
    // The original error says more.
  }
};

/** Makes what was written survive a power loss; for a folder, its entries. */
export const syncFile = (path: string): void => {
  const opened = openSync(path, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
};

/** The file itself goes first: without its `-wal` file, it would be a database of an earlier time. */
export const unlinkDatabase = (path: string): void => {
  for (const ending of ['', '-wal', '-shm']) rmSync(`${path}${ending}`, { force: true });
};

/** Undefined: there is certainly no such file. */
export const fileIdOf = (path: string): string | undefined => {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.dev} ${found.ino}`;
};

/**
 * For a file that was just opened: whether the path still names it. A file that was replaced or removed can still be
 * written to, but is lost once it is closed.
 */
export const stillThere = (path: string): (() => boolean) => {
  const opened = fileIdOf(path);
  return () => fileIdOf(path) === opened;
};
