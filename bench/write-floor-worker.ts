import { DatabaseSync } from '@photostructure/sqlite';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { Database } from '../src/sqlite/database';

/** The one writing thread of the floor: a group of appends with one sync, then four read models, then one message. */
export interface FloorWrite {
  readonly id: number;
  readonly tenant: string;
  readonly body: string;
}

const { folder } = workerData as { folder: string };

const open = (name: string, synchronous: string, table: string): Database => {
  const db = new DatabaseSync(join(folder, `${name}.db`));
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; ${table}`);
  return db;
};

const log = open(
  'events',
  'FULL',
  `CREATE TABLE events (position INTEGER PRIMARY KEY, stream TEXT, revision INTEGER, data TEXT, UNIQUE (stream, revision))`,
);
const last = log.prepare('SELECT max(revision) AS revision FROM events WHERE stream = ?');
const insert = log.prepare('INSERT INTO events (stream, revision, data) VALUES (?, ?, ?)');
const models = ['tenants', 'applications', 'logs', 'usage'].map((name) => {
  const db = open(
    name,
    'NORMAL',
    'CREATE TABLE documents (tenant TEXT, key TEXT, document TEXT, PRIMARY KEY (tenant, key)) WITHOUT ROWID',
  );
  const load = db.prepare('SELECT document FROM documents WHERE tenant = ? AND key = ?');
  const put = db.prepare('INSERT OR REPLACE INTO documents VALUES (?, ?, ?)');
  return { db, load, put };
});

const inTransaction = (db: Database, work: () => void): void => {
  db.exec('BEGIN IMMEDIATE');
  work();
  db.exec('COMMIT');
};

parentPort?.on('message', (writes: readonly FloorWrite[]) => {
  inTransaction(log, () => {
    for (const { tenant, body } of writes) {
      const { revision } = last.get(tenant) as { revision: number | null };
      insert.run(tenant, (revision ?? -1) + 1, body);
    }
  });
  for (const { db, load, put } of models)
    inTransaction(db, () => {
      for (const { tenant, body } of writes) {
        load.get(tenant, 'head');
        put.run(tenant, 'head', body);
      }
    });
  parentPort?.postMessage(writes.map(({ id }) => id));
});
