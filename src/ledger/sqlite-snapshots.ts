import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openForReading, type Database } from '../sqlite/database';
import { startThread } from '../sqlite/thread';
import { FOLD_VERSION, foldFromText, foldToText } from './fold';
import type { Snapshots } from './snapshots';

export interface SnapshotRow {
  readonly stream: string;
  readonly revision: number;
  readonly version: number;
  readonly fold: string;
}

const SAVE_MS = 10_000;

/** Snapshots in `snapshots.db`. The writing thread starts with the first save: most short commands never need it. */
export const sqliteSnapshots = (folder: string): Snapshots => {
  const path = join(folder, 'snapshots.db');
  const thread = startThread(join(__dirname, 'sqlite-snapshots-thread.js'), { path });
  const saving = new Set<Promise<unknown>>();
  let db: Database | undefined;

  const row = (stream: string): SnapshotRow | undefined => {
    if (!existsSync(path)) return undefined;
    db ??= openForReading(path);
    return db
      .prepare('SELECT * FROM snapshots WHERE stream = ? AND version = ?')
      .get(stream, FOLD_VERSION) as SnapshotRow | undefined;
  };

  return {
    load: async (stream) => {
      try {
        const found = row(stream);
        return found === undefined ? undefined : foldFromText(found.fold);
      } catch {
        return undefined;
      }
    },
    save: async (stream, fold) => {
      const { revision } = fold;
      const wish: SnapshotRow = { stream, revision, version: FOLD_VERSION, fold: foldToText(fold) };
      const done = thread.call(wish, SAVE_MS).catch(() => undefined);
      saving.add(done);
      await done;
      saving.delete(done);
    },
    close: async () => {
      await Promise.all(saving);
      await thread.close();
      db?.close();
    },
  };
};
