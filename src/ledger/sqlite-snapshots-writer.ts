import type { Outcome, ThreadBody } from '../async/thread';
import { isBusy, migrate, type Database } from '../sqlite/database';
import { disposableWriter } from '../sqlite/disposable-file';

export interface SaveSnapshot {
  readonly stream: string;
  readonly log: string;
  readonly version: number;
  readonly content: Uint8Array;
}

/** Of earlier programs. Some may run alongside this one, so the tables stay; what is in them is only a cache. */
const FORMER = ['folds', 'fold_parts', 'reply_marks', 'replies'];

const create = (db: Database, path: string): void => {
  migrate(
    db,
    [
      `CREATE TABLE snapshots (
         stream TEXT PRIMARY KEY, revision INTEGER NOT NULL, version INTEGER NOT NULL, fold TEXT NOT NULL
       ) WITHOUT ROWID;`,
    ],
    `The snapshot file ${path}`,
  );
  // Earlier programs check the schema version, which therefore stays.
  db.exec(`CREATE TABLE IF NOT EXISTS tenants (
    stream TEXT PRIMARY KEY, log TEXT NOT NULL, version INTEGER NOT NULL, content BLOB NOT NULL
  )`);
  for (const name of FORMER)
    if (db.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(name) !== undefined)
      db.exec(`DELETE FROM ${name}`);
};

const prepared = (path: string) => (db: Database) => {
  create(db, path);
  /** The latest save wins even over a higher revision, which may be from a history that the log no longer has. */
  return { put: db.prepare('INSERT OR REPLACE INTO tenants VALUES (?, ?, ?, ?)') };
};

/** Answers requests to save snapshots in a file. */
export const savingSnapshots = (path: string): ThreadBody => {
  const file = disposableWriter(path, prepared(path));
  const save = ({ stream, log, version, content }: SaveSnapshot): Outcome => {
    try {
      file.use((_, { put }) => put.run(stream, log, version, content));
      return { value: undefined };
    } catch (error) {
      return { error };
    }
  };
  return {
    answer: (requests) => requests.map((request) => save(request as SaveSnapshot)),
    isRetried: isBusy,
    close: file.close,
  };
};
