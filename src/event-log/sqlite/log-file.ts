import { randomUUID } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf, fault, messageOf, type Fault } from '../../fault';
import { closing, openForReading, openForWriting, syncFile, type Database } from '../../sqlite/database';
import { LOG_FORMAT, UNFINISHED_COPY, mustHaveFormat } from '../event-log';

/** The file of a log: how it is found and created, and its schema. */

export const logPath = (folder: string): string => join(folder, 'events.db');

/** The index is created again if someone dropped it: everything works without it, only slowly. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS events (
    position INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    metadata TEXT NOT NULL,
    recorded_at INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX IF NOT EXISTS events_by_stream ON events (stream, revision);
  CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;`;

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

const logMissing = (path: string): Fault =>
  incomplete(`the folder has read models, but ${path} is missing`, 'Restore it from a backup.');

/** What a log stores about itself. */
export const metaIn = (db: Database, name: 'identity' | 'prefix' | 'format' | 'backup'): string | undefined =>
  (db.prepare('SELECT value FROM meta WHERE name = ?').get(name) as { value: string } | undefined)?.value;

const mustHavePrefix = (db: Database, path: string, prefix: string): void => {
  const found = metaIn(db, 'prefix');
  if (found === prefix) return;
  throw fault(
    'log_of_another_prefix',
    `The streams of the event log ${path} have the prefix "${found}", but STREAM_PREFIX is "${prefix}". ${found === '' ? 'Leave STREAM_PREFIX empty' : `Set STREAM_PREFIX=${found}`}, or name another DATA_DIR.`,
  );
};

/** Throws unless there is a log with this prefix; returns its format. Changes nothing: the connection is read-only. */
export const mustBeOurLog = (path: string, prefix: string): number =>
  closing(openForReading(path), (db) => {
    mustHavePrefix(db, path, prefix);
    return Number(metaIn(db, 'format'));
  });

export const openForAppending = (path: string): Database => {
  const db = openForWriting(path, 'FULL');
  try {
    db.exec(SCHEMA);
    return db;
  } catch (error) {
    db.close();
    throw error;
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
const writeEmptyLog = (path: string, prefix: string, format: number): void =>
  closing(openForAppending(':memory:'), (db) => {
    const put = db.prepare('INSERT INTO meta VALUES (?, ?)');
    put.run('identity', randomUUID());
    put.run('format', String(format));
    put.run('prefix', prefix);
    db.prepare('VACUUM INTO ?').run(path);
  });

/**
 * `read`: nothing is opened for writing until the first append, and the log must exist. `write`: the log must exist.
 * `create`: the log is created if there is none. `copy`: the same for the target of a copy, which must be unfinished.
 */
export type Opening = 'read' | 'write' | 'create' | 'copy';

const OWN_CODE = /^(?:copy_refused|log_incomplete|log_of_another_prefix|log_of_newer_program)$/;

const FULL = 'Nothing was changed. The disk of the event log is full: the operator has to make room.';
const DAMAGED = 'Nothing was changed. The event log is damaged: the operator has to restore a backup.';

/** What the caller should know besides, by the text of SQLite. */
const remedyOf = (why: string) => {
  if (/disk is full/.test(why)) return { detail: FULL };
  return /malformed|not a database/.test(why) ? { detail: DAMAGED, isFinal: true } : { detail: undefined };
};

/** Turns an error of the driver into a fault. */
export const unavailable = (what: string, error: unknown): Fault => {
  const why = messageOf(error);
  const remedy = remedyOf(why);
  const { detail = '' } = remedy;
  return fault('log_unavailable', `${what}: ${why}. ${detail}`.trim(), remedy);
};

export const notOpened = (path: string, error: unknown): unknown =>
  OWN_CODE.test(codeOf(error) ?? '') ? error : unavailable(`The event log ${path} cannot be opened`, error);

/** Checks what exists before anything is written. */
export const ensureLog = (path: string, prefix: string, opening: Opening): void => {
  const isCopy = opening === 'copy';
  if (findLog(path) === 'absent') {
    if (opening !== 'create' && !isCopy) throw logMissing(path);
    mkdirSync(dirname(path), { recursive: true });
    // The file gets its name only when it is complete, so one without tables is never just being created.
    putFile(path, (temporary) => writeEmptyLog(temporary, prefix, isCopy ? UNFINISHED_COPY : LOG_FORMAT));
  }
  mustHaveFormat(mustBeOurLog(path, prefix), path, isCopy);
};

export const completeCopy = async (path: string): Promise<void> => {
  try {
    closing(openForWriting(path, 'FULL'), (db) =>
      db.prepare(`UPDATE meta SET value = ? WHERE name = 'format'`).run(String(LOG_FORMAT)),
    );
  } catch (error) {
    throw unavailable(`The event log ${path} cannot be written`, error);
  }
};
