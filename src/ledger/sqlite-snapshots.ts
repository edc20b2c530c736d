import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { yieldToEventLoop } from '../clock';
import type { Database } from '../sqlite/database';
import { disposableFile, type DisposableFile } from '../sqlite/disposable-file';
import { startThread } from '../sqlite/thread';
import { FOLD_VERSION, type Fold } from './fold';
import { assembleFold, partsOf } from './fold-parts';
import type { KeptMark, KeptReplies, RememberedReply } from './replies';
import type { Snapshots } from './snapshots';

/** Sent one at a time, because the HTTP thread has to copy each message. */
export interface SavePart {
  readonly kind: 'part';
  readonly stream: string;
  /** Identifies the save that the part belongs to. */
  readonly save: string;
  readonly part: number;
  readonly content: string;
}

/** Sent after all its parts. */
export interface SaveFold {
  readonly kind: 'fold';
  readonly stream: string;
  readonly log: string;
  readonly version: number;
  readonly save: string;
  readonly parts: number;
}

export interface AddReplies {
  readonly kind: 'replies';
  readonly stream: string;
  readonly log: string;
  readonly from: KeptMark;
  readonly to: KeptMark;
  readonly replies: readonly RememberedReply[];
}

export type SnapshotRequest = SavePart | SaveFold | AddReplies;

const SAVE_MS = 10_000;

interface HeadRow {
  readonly save: string;
  readonly parts: number;
}

interface PartRow {
  readonly content: string;
}

interface MarkAndReply extends KeptMark {
  readonly key: string | null;
  readonly hash: string;
  readonly keyId: string | null;
  readonly replyRevision: number;
  readonly replyNumber: number;
}

const statementsOf = (db: Database) => ({
  head: db.prepare('SELECT save, parts FROM folds WHERE stream = ? AND log = ? AND version = ?'),
  part: db.prepare('SELECT content FROM fold_parts WHERE stream = ? AND save = ? AND part = ?'),
  mark: db.prepare(
    `SELECT epoch, revision, event_id AS eventId, number, last_key AS lastKey FROM reply_marks
     WHERE stream = ? AND log = ?`,
  ),
  reply: db.prepare(
    `SELECT m.epoch, m.revision, m.event_id AS eventId, m.number, m.last_key AS lastKey, r.key, r.hash,
       r.key_id AS keyId, r.revision AS replyRevision, r.number AS replyNumber
     FROM reply_marks m LEFT JOIN replies r ON r.mark = m.id AND r.key = ? WHERE m.stream = ? AND m.log = ?`,
  ),
});

type Statements = ReturnType<typeof statementsOf>;

/** Runs a query; undefined if the file cannot be read. */
interface Reading {
  <T>(read: (from: Statements) => T): T | undefined;
  /** Whether it failed for a reason other than damage. Then it is not tried again. */
  hasFailed(): boolean;
}

/** Prepares the statements once for each connection. */
const readingFrom = ({ read }: DisposableFile): Reading => {
  const prepared = new WeakMap<Database, Statements>();
  let hasFailed = false;

  const reading = <T>(ask: (from: Statements) => T): T | undefined => {
    try {
      if (hasFailed) return undefined;
      return read((db) => {
        const statements = prepared.get(db) ?? statementsOf(db);
        prepared.set(db, statements);
        return ask(statements);
      });
    } catch {
      hasFailed = true;
      return undefined;
    }
  };
  return Object.assign(reading, { hasFailed: () => hasFailed });
};

/** Undefined also if a concurrent save by another process deletes the parts: then there is no snapshot. */
const loadParts = async (reading: Reading, stream: string, log: string): Promise<Fold | undefined> => {
  const head = reading(({ head: find }) => find.get(stream, log, FOLD_VERSION) as HeadRow | undefined);
  if (head === undefined) return undefined;
  const assembly = assembleFold();
  for (let part = 0; part < head.parts; part += 1) {
    const row = reading(({ part: find }) => find.get(stream, head.save, part)) as PartRow | undefined;
    if (row === undefined || !assembly.add(row.content)) return undefined;
    await yieldToEventLoop();
  }
  return assembly.fold();
};

type Call = <T>(request: SnapshotRequest) => Promise<T>;

const saveParts = async (call: Call, stream: string, log: string, fold: Fold): Promise<void> => {
  const save = randomUUID();
  let parts = 0;
  for (const content of partsOf(fold)) {
    await call({ kind: 'part', stream, save, part: parts, content });
    parts += 1;
  }
  await call({ kind: 'fold', stream, log, version: FOLD_VERSION, save, parts });
};

const keptReplies = (reading: Reading, call: Call, log: string): KeptReplies => ({
  mark: (stream) => reading(({ mark }) => mark.get(stream, log) as KeptMark | undefined),
  find: (stream, key) => {
    const row = reading(({ reply }) => reply.get(key, stream, log) as MarkAndReply | undefined);
    if (row === undefined) return {};
    const { epoch, revision, eventId, number, lastKey, hash, keyId } = row;
    const mark = { epoch, revision, eventId, number, lastKey };
    if (row.key === null) return { mark };
    const reply = { key, hash, revision: row.replyRevision, number: row.replyNumber };
    return { mark, reply: keyId === null ? reply : { ...reply, keyId } };
  },
  add: async (stream, from, to, replies) => {
    if (reading.hasFailed()) throw new Error('The remembered requests cannot be read.');
    const added = await call<KeptMark | null>({ kind: 'replies', stream, log, from, to, replies });
    return added ?? undefined;
  },
});

/**
 * Snapshots and remembered requests of one log in `snapshots.db`. The writer thread starts with the first save, which
 * most short commands never reach.
 */
export const sqliteSnapshots = (
  folder: string,
  log: string,
  report: (what: string, error: unknown) => void,
): Snapshots => {
  const path = join(folder, 'snapshots.db');
  const thread = startThread(join(__dirname, 'sqlite-snapshots-thread.js'), { path });
  const file = disposableFile(path, report);
  const reading = readingFrom(file);
  const saving = new Set<Promise<unknown>>();

  const tracked = <T>(work: Promise<T>): Promise<T> => {
    saving.add(work);
    return work.finally(() => saving.delete(work));
  };
  const call: Call = (request) => file.write(() => thread.call(request, SAVE_MS));

  return {
    load: (stream) => loadParts(reading, stream, log),
    save: (stream, fold) => tracked(saveParts(call, stream, log, fold)).catch(() => undefined),
    replies: keptReplies(reading, (request) => tracked(call(request)), log),
    close: async () => {
      while (saving.size > 0) {
        await Promise.allSettled(saving);
        await yieldToEventLoop();
      }
      await thread.close();
      file.close();
    },
  };
};
