import { join } from 'node:path';
import { yieldToEventLoop } from '../async/clock';
import { answerInPlace, type Thread } from '../async/thread';
import { disposableFile } from '../sqlite/disposable-file';
import { FOLD_VERSION } from './fold';
import { readSnapshot, snapshotText } from './snapshot-text';
import type { Snapshots, TenantSnapshot } from './snapshots';
import { savingSnapshots, type SaveSnapshot } from './sqlite-snapshots-writer';

export const snapshotsPath = (folder: string): string => join(folder, 'snapshots.db');

const SAVE_MS = 10_000;

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
