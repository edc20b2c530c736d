import { workerData } from 'node:worker_threads';
import { closeTidily, migrate, openForWriting } from '../sqlite/database';
import { answerInThread } from '../sqlite/thread-inside';
import type { SnapshotRow } from './sqlite-snapshots';

const { path } = workerData as { path: string };
const db = openForWriting(path, 'NORMAL');
migrate(
  db,
  [
    `CREATE TABLE snapshots (
       stream TEXT PRIMARY KEY, revision INTEGER NOT NULL, version INTEGER NOT NULL, fold TEXT NOT NULL
     ) WITHOUT ROWID;`,
  ],
  `The snapshot file ${path}`,
);
/** The latest save wins, also over a higher revision: that may be of a history that is no more. */
const upsert = db.prepare('INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)');

answerInThread({
  answer: (requests) =>
    requests.map((request) => {
      const { stream, revision, version, fold } = request as SnapshotRow;
      upsert.run(stream, revision, version, fold);
      return { value: true };
    }),
  close: () => closeTidily(db),
});
