import { workerData } from 'node:worker_threads';
import { closeTidily, inTransaction, migrate, openForWriting } from '../sqlite/database';
import { answerInThread } from '../sqlite/thread';
import type { KeyUse } from './gathered-uses';

const { path } = workerData as { path: string };
const db = openForWriting(path, 'NORMAL');
migrate(
  db,
  [
    `CREATE TABLE key_uses (
       tenant_id TEXT NOT NULL, key_id TEXT NOT NULL, used_at TEXT NOT NULL, PRIMARY KEY (tenant_id, key_id)
     ) WITHOUT ROWID;`,
  ],
  `The file of key uses ${path}`,
);
/** Keeps the latest use, in whatever order several processes write. */
const upsert = db.prepare(
  `INSERT INTO key_uses VALUES (?, ?, ?)
   ON CONFLICT DO UPDATE SET used_at = MAX(used_at, excluded.used_at)`,
);

answerInThread({
  answer: (requests) =>
    inTransaction(db, () => {
      for (const { tenantId, keyId, at } of (requests as KeyUse[][]).flat()) upsert.run(tenantId, keyId, at);
      return requests.map(() => ({ value: true }));
    }),
  close: () => closeTidily(db),
});
