import { join } from 'node:path';
import { yieldToEventLoop } from '../async/clock';
import { disposableFile } from '../sqlite/disposable-file';
import { startThread } from '../sqlite/thread';
import { FOLD_VERSION } from './fold';
import { readSnapshot, snapshotText } from './snapshot-text';
import type { Snapshots, TenantSnapshot } from './snapshots';

export interface SaveSnapshot {
  readonly stream: string;
  readonly log: string;
  readonly version: number;
  readonly content: Uint8Array;
}

const SAVE_MS = 10_000;

const FIND = 'SELECT content FROM tenants WHERE stream = ? AND log = ? AND version = ?';

/** The snapshots of one log in `snapshots.db`. The writer thread starts with the first save, which few commands reach. */
export const sqliteSnapshots = (
  folder: string,
  log: string,
  report: (what: string, error: unknown) => void,
): Snapshots => {
  const path = join(folder, 'snapshots.db');
  const thread = startThread(join(__dirname, 'sqlite-snapshots-thread.js'), { path });
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
    await file.write(() => thread.call(request, SAVE_MS));
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
