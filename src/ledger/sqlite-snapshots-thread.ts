import { workerData } from 'node:worker_threads';
import { migrate, type Database } from '../sqlite/database';
import { disposableWriter } from '../sqlite/disposable-file';
import { answerInThread, type Outcome } from '../sqlite/thread';
import type { SaveSnapshot } from './sqlite-snapshots';

const { path } = workerData as { path: string };

/** Of earlier programs. Some may run alongside this one, so the tables stay; what is in them is only a cache. */
const FORMER = ['folds', 'fold_parts', 'reply_marks', 'replies'];

const create = (db: Database): void => {
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

const prepared = (db: Database) => {
  create(db);
  /** The latest save wins even over a higher revision, which may be from a history that the log no longer has. */
  return { put: db.prepare('INSERT OR REPLACE INTO tenants VALUES (?, ?, ?, ?)') };
};

const file = disposableWriter(path, prepared);

const answer = ({ stream, log, version, content }: SaveSnapshot): Outcome => {
  try {
    file.use((_, { put }) => put.run(stream, log, version, content));
    return { value: undefined };
  } catch (error) {
    return { error };
  }
};

answerInThread({
  answer: (requests) => requests.map((request) => answer(request as SaveSnapshot)),
  close: file.close,
});
