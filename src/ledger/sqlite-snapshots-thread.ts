import { workerData } from 'node:worker_threads';
import { inTransaction, migrate, type Database } from '../sqlite/database';
import { disposableWriter } from '../sqlite/disposable-file';
import { answerInThread, type Outcome } from '../sqlite/thread';
import { MAX_REPLIES, type KeptMark } from './replies';
import type { AddReplies, SaveFold, SavePart, SnapshotRequest } from './sqlite-snapshots';

const { path } = workerData as { path: string };

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
  // Earlier programs check the schema version and use the table above; they may run alongside this one.
  db.exec(`
    CREATE TABLE IF NOT EXISTS folds (
      stream TEXT PRIMARY KEY, log TEXT NOT NULL, version INTEGER NOT NULL, save TEXT NOT NULL,
      parts INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS fold_parts (
      stream TEXT NOT NULL, save TEXT NOT NULL, part INTEGER NOT NULL, content TEXT NOT NULL,
      UNIQUE (stream, save, part)
    );
    CREATE TABLE IF NOT EXISTS reply_marks (
      id INTEGER PRIMARY KEY, stream TEXT NOT NULL UNIQUE, log TEXT NOT NULL, epoch TEXT NOT NULL,
      revision INTEGER NOT NULL, event_id TEXT NOT NULL, number INTEGER NOT NULL, last_key TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS replies (
      mark INTEGER NOT NULL, key TEXT NOT NULL, hash TEXT NOT NULL, key_id TEXT, revision INTEGER NOT NULL,
      number INTEGER NOT NULL, PRIMARY KEY (mark, key)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS replies_by_number ON replies (mark, number);
  `);
};

const prepared = (db: Database) => {
  create(db);
  return {
    /** The latest save wins even over a higher revision, which may be from a history that the log no longer has. */
    putFold: db.prepare('INSERT OR REPLACE INTO folds VALUES (?, ?, ?, ?, ?)'),
    putPart: db.prepare('INSERT INTO fold_parts VALUES (?, ?, ?, ?)'),
    partsOf: db.prepare('SELECT count(*) AS parts FROM fold_parts WHERE stream = ? AND save = ?'),
    dropOtherParts: db.prepare('DELETE FROM fold_parts WHERE stream = ? AND save != ?'),
    markOf: db.prepare(
      `SELECT id, epoch, revision, event_id AS eventId, number, last_key AS lastKey FROM reply_marks
       WHERE stream = ?`,
    ),
    putMark: db.prepare(
      `INSERT INTO reply_marks (stream, log, epoch, revision, event_id, number, last_key) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (stream) DO UPDATE SET log = excluded.log, epoch = excluded.epoch, revision = excluded.revision,
         event_id = excluded.event_id, number = excluded.number, last_key = excluded.last_key
       RETURNING id`,
    ),
    dropReplies: db.prepare('DELETE FROM replies WHERE mark = ?'),
    dropOldReplies: db.prepare('DELETE FROM replies WHERE mark = ? AND number <= ?'),
    /** Keeps the first reply under a key, unless it is too old to be remembered. */
    putReply: db.prepare(
      `INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (mark, key) DO UPDATE SET hash = excluded.hash, key_id = excluded.key_id,
         revision = excluded.revision, number = excluded.number
       WHERE number <= excluded.number - ${MAX_REPLIES}`,
    ),
  };
};

type Statements = ReturnType<typeof prepared>;

const savePart = ({ putPart }: Statements, { stream, save, part, content }: SavePart): true => {
  putPart.run(stream, save, part, content);
  return true;
};

/** Only if all its parts are still there: a concurrent save by another process deletes them. */
const saveFold = (on: Statements, { stream, log, version, save, parts }: SaveFold): boolean => {
  const found = on.partsOf.get(stream, save) as { parts: number };
  if (found.parts !== parts) return false;
  on.putFold.run(stream, log, version, save, parts);
  on.dropOtherParts.run(stream, save);
  return true;
};

interface MarkRow extends KeptMark {
  readonly id: number;
}

const keep = (
  on: Statements,
  { stream, log, to, replies }: Pick<AddReplies, 'stream' | 'log' | 'to' | 'replies'>,
): KeptMark => {
  const { epoch, revision, eventId, number, lastKey } = to;
  const { id } = on.putMark.get(stream, log, epoch, revision, eventId, number, lastKey) as { id: number };
  for (const reply of replies)
    on.putReply.run(id, reply.key, reply.hash, reply.keyId ?? null, reply.revision, reply.number);
  on.dropOldReplies.run(id, number - MAX_REPLIES);
  return to;
};

/** Compare-and-set: another process may have stored the same in the meantime, or started over. */
const add = (on: Statements, request: AddReplies): KeptMark | null => {
  const { stream, from, to } = request;
  const current = on.markOf.get(stream) as MarkRow | undefined;
  if (from.revision < 0) {
    if (current !== undefined) on.dropReplies.run(current.id);
    return keep(on, request);
  }
  if (current?.epoch !== from.epoch || current.revision < from.revision) return null;
  return current.revision >= to.revision ? current : keep(on, request);
};

const handle = (on: Statements, request: SnapshotRequest): unknown => {
  switch (request.kind) {
    case 'part':
      return savePart(on, request);
    case 'fold':
      return saveFold(on, request);
    case 'replies':
      return add(on, request);
  }
};

const file = disposableWriter(path, prepared);

const answer = (request: SnapshotRequest): Outcome => {
  try {
    return { value: file.use((db, on) => inTransaction(db, () => handle(on, request))) };
  } catch (error) {
    return { error };
  }
};

answerInThread({
  answer: (requests) => requests.map((request) => answer(request as SnapshotRequest)),
  close: file.close,
});
