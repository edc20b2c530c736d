import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf, fault, messageOf } from '../../fault';
import { isProblemCode } from '../../problems';
import {
  attach,
  closeAlone,
  inTransaction,
  isBusy,
  openAlone,
  openForWriting,
  type Database,
} from '../../sqlite/database';
import type { Position } from '../event-log';
import { copyEvents, chainEvents, headIn, NO_EVENTS, type Beginning, type Schema } from './backup-events';
import {
  MANIFEST,
  readManifest,
  replaceManifest,
  startManifest,
  unusable,
  type Manifest,
} from './backup-manifest';
import { createTables, findLog, LOG_FILE, logPath, metaIn } from './log-file';
import { positionOf } from './reader';

/**
 * Backs up a log while it is being written to. A backup is a folder with an exact copy of the events and a manifest,
 * which is replaced when everything is copied and compared. The log is append-only, so any prefix of it is consistent: a
 * backup blocks no writer, and the next one into the same folder adds only what is new. Whoever writes or reads the copy
 * holds SQLite's lock on it, so that others are refused.
 */

/** What a backup covers. */
export interface BackedUp {
  readonly identity: string;
  readonly events: number;
  readonly lastPosition: Position | undefined;
  /** When the last event was recorded. */
  readonly lastRecordedAt: string | undefined;
  /** See `chainEvents`. */
  readonly chain: string;
}

export type OnProgress = (step: 'copying' | 'verifying', done: number, total: number) => void;

/** How far back a backup is compared with the log before more is added. */
const TAIL_POSITIONS = 10_000;

const explained = (folder: string, error: unknown): unknown => {
  if (isProblemCode(codeOf(error) ?? '')) return error;
  return unusable(
    isBusy(error)
      ? `The backup in ${folder} is in use: it is being written, verified or restored. Wait until that ends, and try again.`
      : `The backup in ${folder} cannot be used: ${messageOf(error)}`,
  );
};

const backedUp = (db: Database, schema: Schema, { events, last, chain }: Beginning): BackedUp => {
  const row = db.prepare(`SELECT recorded_at AS at FROM ${schema}.events WHERE position = ?`).get(last) as
    { at: number } | undefined;
  return {
    identity: metaIn(db, 'identity', schema) ?? '',
    events,
    lastPosition: last === 0 ? undefined : positionOf(last),
    lastRecordedAt: row === undefined ? undefined : new Date(row.at).toISOString(),
    chain,
  };
};

/** The log's own metadata (identity, prefix and format), and the head of the log at the same moment. */
export const copyMeta = (db: Database): number =>
  inTransaction(db, () => {
    db.exec('DELETE FROM main.meta; INSERT INTO main.meta SELECT name, value FROM source.meta');
    return headIn(db, 'source');
  });

/** Whether log and backup have the same events between two positions. */
const isSame = async (db: Database, after: number, upTo: number): Promise<boolean> => {
  const from = { ...NO_EVENTS, last: after };
  const [copied, original] = [
    await chainEvents(db, 'main', from, upTo),
    await chainEvents(db, 'source', from, upTo),
  ];
  return copied.chain === original.chain;
};

/** Throws if no backup may be written into the folder. */
const prepare = (folder: string): void => {
  const files = readdirSync(folder);
  if (files.includes(MANIFEST)) return void readManifest(folder);
  const foreign = files.find((name) => !name.startsWith(`${MANIFEST}.`));
  if (foreign !== undefined)
    throw unusable(
      `The folder ${folder} contains ${foreign} and no backup. Name an empty folder, or that of an earlier backup.`,
    );
  startManifest(folder);
};

/** Throws unless the log continues the backup. */
const mustContinue = async (db: Database, folder: string, manifest: Manifest): Promise<void> => {
  const { identity, events, last } = manifest;
  if (identity === undefined) return;
  if (metaIn(db, 'identity', 'source') !== identity)
    throw unusable(`The folder ${folder} contains a backup of another event log. Name another folder.`);
  const upTo = db.prepare('SELECT count(*) AS found FROM main.events WHERE position <= ?');
  const { found } = upTo.get(last) as { found: number };
  if (found !== events)
    throw unusable(
      `The backup in ${folder} contains ${found} of its ${events} events: something was removed or added. Name another folder for a new one.`,
    );
  if (!(await isSame(db, last - TAIL_POSITIONS, last)))
    throw unusable(
      `The event log no longer has the events up to ${positionOf(last)} as they were backed up in ${folder}: it was changed or rolled back. Keep that backup, and name another folder for a new one.`,
    );
};

/** Copies what is new and reads it again. What a killed backup has copied is used if it is still that of the log. */
const addNew = async (db: Database, known: Beginning, onProgress: OnProgress): Promise<Beginning> => {
  if (!(await isSame(db, known.last, headIn(db, 'main'))))
    db.prepare('DELETE FROM main.events WHERE position > ?').run(known.last);
  const head = copyMeta(db);
  const from = headIn(db, 'main');
  await copyEvents(db, head, (copied) => onProgress('copying', copied, head - from));
  const onPage = (events: number): void => onProgress('verifying', events - known.events, head - known.last);
  const written = await chainEvents(db, 'main', known, head, onPage);
  if ((await chainEvents(db, 'source', known, head)).chain === written.chain) return written;
  throw unusable('The events were not written as they are in the log. Check the disk, and try again.');
};

/** Adds everything new in the log to a backup, or starts one. */
export const createBackup = async (
  logFolder: string,
  folder: string,
  onProgress: OnProgress,
): Promise<BackedUp & { readonly added: number }> => {
  const log = logPath(logFolder);
  if (findLog(log) === 'absent')
    throw fault('log_not_found', `There is no event log in the folder ${logFolder}.`);
  prepare(folder);
  const path = logPath(folder);
  let db: Database | undefined;
  try {
    db = openAlone(path);
    createTables(db, path);
    attach(db, log, 'source', 'mode=ro');
    const known = readManifest(folder);
    await mustContinue(db, folder, known);
    const all = await addNew(db, known, onProgress);
    const created = backedUp(db, 'main', all);
    replaceManifest(folder, { ...all, identity: created.identity });
    return { ...created, added: all.events - known.events };
  } catch (error) {
    throw explained(folder, error);
  } finally {
    if (db !== undefined) closeAlone(db);
  }
};

/** Throws `backup_unusable` unless these are exactly the events that the manifest describes. */
export const mustMatchManifest = async (
  db: Database,
  schema: Schema,
  { manifest, where, onProgress }: { manifest: Manifest; where: string; onProgress: OnProgress },
): Promise<BackedUp> => {
  const onPage = (events: number): void => onProgress('verifying', events, manifest.events);
  if (metaIn(db, 'identity', schema) !== manifest.identity)
    throw unusable(`The ${LOG_FILE} in ${where} is not that of its ${MANIFEST}.`);
  const found = await chainEvents(db, schema, NO_EVENTS, manifest.last, onPage);
  if (found.events === manifest.events && found.chain === manifest.chain) return backedUp(db, schema, found);
  throw unusable(
    `The events in ${where} are not those that were backed up: something was changed, removed or added.`,
  );
};

/** A killed backup leaves a file from which SQLite completes its work. That is done in a copy. */
const attachRecovered = (db: Database, path: string): (() => void) => {
  const folder = mkdtempSync(join(tmpdir(), 'tenant-ledger-backup-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    for (const end of ['', '-journal']) copyFileSync(path + end, logPath(folder) + end);
    attach(db, logPath(folder), 'source', 'mode=rw');
    return remove;
  } catch (error) {
    remove();
    throw unusable(
      `The last backup into ${path} was interrupted, and the temporary copy that is needed to read it cannot be made: ${messageOf(error)}. Name a folder with enough space with TMPDIR.`,
    );
  }
};

/**
 * Makes the events of a backup readable as `source` and keeps others from writing them. Nothing is written beside them,
 * since they may be on read-only media. Returns what to do when they have been read.
 */
const attachBackup = (db: Database, folder: string): (() => void) => {
  const path = logPath(folder);
  if (!existsSync(path)) throw unusable(`The backup in ${folder} has no ${LOG_FILE}.`);
  const left = statSync(`${path}-journal`, { throwIfNoEntry: false })?.size ?? 0;
  try {
    attach(db, path, 'source', 'mode=ro');
  } catch (error) {
    if (isBusy(error) || left === 0) throw error;
    return attachRecovered(db, path);
  }
  db.exec('PRAGMA source.locking_mode = EXCLUSIVE; SELECT count(*) FROM source.sqlite_master');
  return () => undefined;
};

/** Verifies a backup as `source`, and lets the work use it. */
export const withBackup = async <T>(
  db: Database,
  folder: string,
  onProgress: OnProgress,
  work: (backup: { readonly manifest: Manifest; readonly verified: BackedUp }) => Promise<T>,
): Promise<T> => {
  try {
    const manifest = readManifest(folder);
    if (manifest.identity === undefined)
      throw unusable(
        `The first backup into the folder ${folder} was not finished: run tenant-ledger backup create again.`,
      );
    const done = attachBackup(db, folder);
    try {
      const verified = await mustMatchManifest(db, 'source', { manifest, where: folder, onProgress });
      return await work({ manifest, verified });
    } finally {
      db.exec('DETACH source');
      done();
    }
  } catch (error) {
    throw explained(folder, error);
  }
};

/** Reads the whole backup. Throws `backup_unusable` if anything differs. */
export const verifyBackup = async (folder: string, onProgress: OnProgress): Promise<BackedUp> => {
  const db = openForWriting(':memory:', 'FULL');
  try {
    return await withBackup(db, folder, onProgress, async ({ verified }) => verified);
  } finally {
    db.close();
  }
};
