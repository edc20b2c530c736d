import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { monotonicMs } from '../clock';
import { fault, messageOf } from '../fault';

export type Database = DatabaseSyncInstance;

/** How long a writer waits for another process's lock before it gives up. */
const BUSY_MS = 1_000;

const SQLITE_BUSY = 5;
const RETRY_MS = 5;

/** Somebody else holds the lock. */
export const isBusy = (error: unknown): boolean =>
  (error as { errcode?: number } | undefined)?.errcode === SQLITE_BUSY;

/** When several processes open a new file at once, SQLite refuses all but one immediately, without waiting for the lock. */
const switchToWal = (db: Database): void => {
  const end = monotonicMs() + BUSY_MS;
  const still = new Int32Array(new SharedArrayBuffer(4));
  for (;;)
    try {
      return db.exec('PRAGMA journal_mode = WAL');
    } catch (error) {
      if (!isBusy(error) || monotonicMs() > end) throw error;
      Atomics.wait(still, 0, 0, RETRY_MS);
    }
};

/** FULL: a commit is on the disk when it returns. NORMAL: the file stays consistent, but the last commits may be lost. */
export const openForWriting = (path: string, synchronous: 'FULL' | 'NORMAL'): Database => {
  const db = new DatabaseSync(path, { timeout: BUSY_MS });
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
  new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });

/** For a writing thread, which retries by itself: the shorter each wait, the sooner it can answer those whose time is up. */
export const waitBriefly = (db: Database): void => db.exec('PRAGMA busy_timeout = 20');

/**
 * Moves what was committed from the `-wal` file into the file itself, as far as concurrent readers allow. It never waits
 * for long.
 */
export const checkpoint = (db: Database): void => {
  waitBriefly(db);
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
};

/**
 * Closes a writing connection so that the file alone is complete, unless another process uses it. SQLite would do so by
 * itself, but not while there are prepared statements, which the driver finalizes only at garbage collection.
 */
export const closeTidily = (db: Database): void => {
  try {
    checkpoint(db);
  } catch {
    // What is not in the file is in its -wal: nothing is lost.
  } finally {
    db.close();
  }
};

/**
 * Runs work in one transaction that holds the file's write lock from its start. If the work throws, nothing was written.
 * `commit_failed` does not mean that: a commit whose sync failed is undone for all open connections, but it may be on the
 * disk, and then it is there after a crash. The next commit overwrites it.
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
    throw isDone ? fault('commit_failed', `The commit failed: ${messageOf(error)}`) : error;
  }
};

/** SQLite ends a transaction by itself after some errors, and rolling back may fail for the same reason as the work. */
const rollBack = (db: Database): void => {
  try {
    if (db.isTransaction) db.exec('ROLLBACK');
  } catch {
    // The error that led here says more.
  }
};

/** Migrates a file to the newest schema, step by step, and refuses a file of a newer program. */
export const migrate = (db: Database, steps: readonly string[], what: string): void => {
  const version = (): number =>
    (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version;
  if (version() === steps.length) return;
  inTransaction(db, () => {
    const from = version();
    if (from > steps.length)
      throw new Error(
        `${what} was made by a newer version of tenant-ledger. Start that version, or a newer one.`,
      );
    for (const step of steps.slice(from)) db.exec(step);
    db.exec(`PRAGMA user_version = ${steps.length}`);
  });
};

export const sqliteVersion = (db: Database): string =>
  (db.prepare('SELECT sqlite_version() AS version').get() as { version: string }).version;

export const dataVersion = (db: Database): (() => number) => {
  const statement = db.prepare('PRAGMA data_version');
  statement.setReturnArrays(true);
  return () => (statement.get() as unknown as [number])[0];
};
