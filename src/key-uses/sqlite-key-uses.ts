import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fault, messageOf } from '../fault';
import { openForReading, type Database } from '../sqlite/database';
import { startThread } from '../sqlite/thread';
import { gatheredUses, type KeyUsesOptions } from './gathered-uses';
import type { KeyUses } from './key-uses';

const WRITE_MS = 10_000;

/** Stored in `key-uses.db`. The writer thread starts with the first use, so commands never start it. */
export const sqliteKeyUses = (folder: string, options: KeyUsesOptions = {}): KeyUses => {
  const path = join(folder, 'key-uses.db');
  const thread = startThread(join(__dirname, 'sqlite-key-uses-thread.js'), { path });
  const { used, close } = gatheredUses((uses) => thread.call(uses, WRITE_MS), options);
  let db: Database | undefined;

  const rowsOf = (tenantId: string, keyIds?: readonly string[]): unknown => {
    try {
      db ??= openForReading(path);
      const all = 'SELECT key_id, used_at FROM key_uses WHERE tenant_id = ?';
      if (keyIds === undefined) return db.prepare(all).all(tenantId);
      const single = db.prepare(`${all} AND key_id = ?`);
      return keyIds.flatMap((keyId) => single.get(tenantId, keyId) ?? []);
    } catch (error) {
      // The writer thread is about to create it.
      if (messageOf(error).includes('no such table')) return [];
      const what = `The last uses of keys in ${path} cannot be read (${messageOf(error)}).`;
      throw fault('data_dir_unusable', `${what} Delete the file: another one is made.`);
    }
  };

  return {
    used,
    lastUses: async (tenantId, keyIds) => {
      if (!existsSync(path)) return new Map();
      const rows = rowsOf(tenantId, keyIds);
      return new Map((rows as { key_id: string; used_at: string }[]).map((row) => [row.key_id, row.used_at]));
    },
    close: async () => {
      await close();
      await thread.close();
      if (db?.isOpen === true) db.close();
    },
  };
};
