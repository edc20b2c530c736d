import { statSync } from 'node:fs';
import { fault, type Fault } from '../../fault';
import { openForReading, type Database } from '../../sqlite/database';
import { prefixOf } from '../streams';

/**
 * What is found where a log should be, looked at before anything is written there. Only a place without any trace of a
 * log is one where a log can be made: a log that was lost or copied in part must never look like a first start.
 */

const sizeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.size;

const BEGIN_ANEW =
  'To begin with an empty log instead, move what is left of it, and the folder read-models, out of the way.';

const incomplete = (what: string, remedy: string): Fault =>
  fault('log_incomplete', `The event log is not complete: ${what}. ${remedy} ${BEGIN_ANEW}`);

/** The file is there, or nothing is. The `-wal` file is looked for first: whoever makes a log makes it second. */
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
export const prefixIn = (db: Database): string | undefined => {
  const kept = db.prepare(`SELECT value FROM meta WHERE name = 'prefix'`).get() as
    { value: string } | undefined;
  if (kept !== undefined) return kept.value;
  for (const row of db.prepare('SELECT stream FROM events ORDER BY position').iterate()) {
    const prefix = prefixOf((row as { stream: string }).stream);
    if (prefix !== undefined) return prefix;
  }
  return undefined;
};

export const mustHavePrefix = (db: Database, path: string, prefix: string): void => {
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
