import { workerData } from 'node:worker_threads';
import { migrate, openForWriting } from '../sqlite/database';
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
const upsert = db.prepare(
  `INSERT INTO snapshots VALUES (?, ?, ?, ?)
   ON CONFLICT (stream) DO UPDATE SET revision = excluded.revision, version = excluded.version, fold = excluded.fold
   WHERE excluded.version <> version OR excluded.revision > revision`,
);

answerInThread({
  answer: (requests) =>
    requests.map((request) => {
      const { stream, revision, version, fold } = request as SnapshotRow;
      upsert.run(stream, revision, version, fold);
      return { value: true };
    }),
  close: () => db.close(),
});
