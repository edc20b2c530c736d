import { join } from 'node:path';
import { BACKGROUND_MS, yieldToEventLoop } from '../async/clock';
import { answerEach, answerInPlace, type Thread, type ThreadBody } from '../async/thread';
import { isBusy, type Database } from '../sqlite/database';
import { disposableFile, disposableWriter } from '../sqlite/disposable-file';
import { FOLD_VERSION } from './fold';
import { readSnapshot, snapshotText } from './snapshot-text';
import type { Snapshots, TenantSnapshot } from './snapshots';

export const snapshotsPath = (folder: string): string => join(folder, 'snapshots.db');

interface SaveSnapshot {
  readonly stream: string;
  readonly log: string;
  readonly version: number;
  readonly content: Uint8Array;
}

/** The latest save wins even over a higher revision, which may be from a history that the log no longer has. */
const SAVE = 'INSERT OR REPLACE INTO tenants VALUES (?, ?, ?, ?)';

const prepared = (db: Database) => {
  db.exec(`CREATE TABLE IF NOT EXISTS tenants (
    stream TEXT PRIMARY KEY, log TEXT NOT NULL, version INTEGER NOT NULL, content BLOB NOT NULL
  )`);
  return db.prepare(SAVE);
};

/** Answers requests to save snapshots in a file. */
export const savingSnapshots = (path: string): ThreadBody => {
  const file = disposableWriter(path, prepared);
  const save = ({ stream, log, version, content }: SaveSnapshot): void =>
    file.use((_, put) => void put.run(stream, log, version, content));
  return { answer: answerEach(save), isRetried: isBusy, close: file.close };
};

const FIND = 'SELECT content FROM tenants WHERE stream = ? AND log = ? AND version = ?';

/** The snapshots of one log in `snapshots.db`. */
export const sqliteSnapshots = (
  folder: string,
  log: string,
  report: (what: string, error: unknown) => void,
  writer?: Thread,
): Snapshots => {
  const path = snapshotsPath(folder);
  const thread = writer ?? answerInPlace(() => savingSnapshots(path));
  const file = disposableFile(path, report);
  const saving = new Set<Promise<unknown>>();

  const find = (stream: string): Uint8Array | undefined => {
    try {
      const row = file.read((db) => db.prepare(FIND).get(stream, log, FOLD_VERSION));
      return (row as { readonly content: Uint8Array } | undefined)?.content;
    } catch {
      return undefined;
    }
  };

  const save = async (stream: string, snapshot: TenantSnapshot): Promise<void> => {
    const content = await snapshotText(snapshot);
    const request: SaveSnapshot = { stream, log, version: FOLD_VERSION, content };
    await file.write(() => thread.call(request, BACKGROUND_MS));
  };

  return {
    load: async (stream) => {
      const content = find(stream);
      return content === undefined ? undefined : readSnapshot(content);
    },
    save: async (stream, snapshot) => {
      const saved = save(stream, snapshot).catch(() => undefined);
      saving.add(saved);
      await saved;
      saving.delete(saved);
    },
    close: async () => {
      while (saving.size > 0) {
        await Promise.all(saving);
        await yieldToEventLoop();
      }
      await thread.close();
      file.close();
    },
  };
};
