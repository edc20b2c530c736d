import { DatabaseSync } from '@photostructure/sqlite';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { codeOf, fault, messageOf, type Fault } from '../../fault';
import { isProblemCode } from '../../problems';
import { closing, damageIn, openForReading, type Database } from '../../sqlite/database';
import { findLog, logPath, metaIn, placeFile, restoringOf } from './log-file';
import { positionOf } from './reader';

/** A folder with a copy of the whole log and the checksum of its events. A new one is read again before it takes its place. */
export type OnProgress = (events: number) => void;

const COLUMNS = 'position, stream, revision, id, type, data, metadata, recorded_at';

const unusable = (why: string): Fault => fault('backup_unusable', why);
const refused = (why: string): Fault => fault('restore_refused', `${why} Nothing was restored.`);

/** Failures of SQLite and of the file system name the backup. */
const naming = <T>(folder: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (isProblemCode(codeOf(error) ?? '')) throw error;
    throw unusable(`The backup in ${folder} cannot be made or used: ${messageOf(error)}`);
  }
};

const contentsOf = (db: Database, onProgress: OnProgress, upTo = Number.MAX_SAFE_INTEGER) => {
  onProgress(0);
  const rows = db.prepare(
    `SELECT position, recorded_at, CAST(json_array(${COLUMNS}) AS BLOB) FROM events
     WHERE position <= ? ORDER BY position`,
  );
  rows.setReturnArrays(true);
  const hash = createHash('sha256');
  let events = 0;
  let last: readonly [position: number, recordedAt: number] | undefined;
  for (const row of rows.iterate(upTo)) {
    const [position, recordedAt, bytes] = row as unknown as [number, number, Uint8Array];
    hash.update(bytes).update('\n');
    last = [position, recordedAt];
    onProgress((events += 1));
  }
  return {
    identity: metaIn(db, 'identity') ?? '',
    events,
    lastPosition: last && positionOf(last[0]),
    lastRecordedAt: last && new Date(last[1]).toISOString(),
    /** SHA-256 over the events in order, each as a JSON array of `COLUMNS` and a line feed. */
    checksum: hash.digest('hex'),
  };
};

export type BackedUp = ReturnType<typeof contentsOf>;

const verified = (db: Database, where: string, onProgress: OnProgress): BackedUp => {
  const stored = metaIn(db, 'backup');
  if (stored === undefined) throw unusable(`The folder ${where} contains an event log that is not a backup.`);
  const contents = contentsOf(db, onProgress);
  const damage = damageIn(db);
  if (damage !== undefined) throw unusable(`The file in ${where} is damaged: ${damage}`);
  if (contents.checksum === stored) return contents;
  throw unusable(
    `The events in ${where} are not those that were backed up: something was changed, removed or added.`,
  );
};

/** Throws unless the log has the last event of the backup that is to be replaced, which otherwise may be the better one. */
const mustReplace = (folder: string, log: Database): void => {
  if (!existsSync(logPath(folder))) {
    // What a killed backup left is its own.
    const found = readdirSync(folder).find((name) => !name.startsWith('events.db.'));
    if (found === undefined) return;
    throw unusable(`The folder ${folder} contains ${found}, and no backup. Name an empty folder.`);
  }
  const isContinued = closing(openForReading(logPath(folder)), (old) => {
    if (metaIn(old, 'backup') === undefined)
      throw unusable(`The folder ${folder} contains an event log that is not a backup. Name another folder.`);
    const last = old.prepare('SELECT position, id FROM events ORDER BY position DESC LIMIT 1').get();
    const { position, id } = (last ?? {}) as { position: number; id: string };
    const same = log.prepare('SELECT 1 FROM events WHERE position = ? AND id = ?');
    return last === undefined || same.get(position, id) !== undefined;
  });
  if (!isContinued)
    throw unusable(
      `The event log does not have the last event of the backup in ${folder}: it is another log, or was rolled back. Keep that backup, and name another folder for a new one.`,
    );
};

/** Copies the log into a new file, stores the digest of the log in it, and verifies it. */
const copyInto = (path: string, log: Database, onProgress: OnProgress): BackedUp => {
  log.prepare('VACUUM INTO ?').run(path);
  closing(new DatabaseSync(path), (copy) => {
    const head = copy.prepare('SELECT ifnull(max(position), 0) AS last FROM events').get();
    const { checksum } = contentsOf(log, onProgress, (head as { last: number }).last);
    copy.prepare(`INSERT OR REPLACE INTO meta VALUES ('backup', ?)`).run(checksum);
  });
  // Opened again: what is verified is read from the file, not from memory.
  return closing(openForReading(path), (copy) => verified(copy, path, onProgress));
};

/** Backs up a log, even while it is being written to. Until it succeeds, the earlier backup in the folder stays. */
export const createBackup = (logFolder: string, folder: string, onProgress: OnProgress): BackedUp =>
  naming(folder, () => {
    if (findLog(logPath(logFolder)) === 'absent')
      throw fault('log_not_found', `There is no event log in the folder ${logFolder}.`);
    return closing(openForReading(logPath(logFolder)), (log) => {
      mustReplace(folder, log);
      const path = `${logPath(folder)}.${randomUUID()}`;
      return placeFile(path, logPath(folder), () => copyInto(path, log, onProgress), renameSync);
    });
  });

const openBackup = (folder: string): Database => {
  if (existsSync(logPath(folder))) return openForReading(logPath(folder));
  throw unusable(`The folder ${folder} contains no backup.`);
};

/** Reads the whole backup. Throws `backup_unusable` if anything differs. */
export const verifyBackup = (folder: string, onProgress: OnProgress): BackedUp =>
  naming(folder, () => closing(openBackup(folder), (backup) => verified(backup, folder, onProgress)));

const mustBeEmpty = (target: string): void => {
  const [found] = readdirSync(target);
  if (found !== undefined)
    throw refused(
      `The folder ${target} contains ${found}. A backup is only restored into an empty folder: name another DATA_DIR, or move the contents away.`,
    );
};

/** Writes the log into a file, and verifies it there. It is no backup any more. */
const restoreInto = (path: string, backup: Database, onProgress: OnProgress): BackedUp => {
  backup.prepare('VACUUM INTO ?').run(path);
  const restored = closing(openForReading(path), (log) => verified(log, path, onProgress));
  closing(new DatabaseSync(path), (log) => log.exec(`DELETE FROM meta WHERE name = 'backup'`));
  return restored;
};

/** Restores a backup into an empty folder. Never overwrites anything, even if it appears in the meantime. */
export const restoreBackup = (folder: string, target: string, onProgress: OnProgress): BackedUp =>
  naming(folder, () => {
    mustBeEmpty(target);
    const path = restoringOf(logPath(target));
    return closing(openBackup(folder), (backup) => {
      // As long as the file is there, nobody creates a log in the folder (`findLog`).
      writeFileSync(path, '', { flag: 'wx' });
      try {
        return placeFile(path, logPath(target), () => restoreInto(path, backup, onProgress));
      } catch (error) {
        if (codeOf(error) === 'EEXIST') mustBeEmpty(target);
        throw error;
      }
    });
  });
