import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { monotonicMs } from '../clock';
import { fault, messageOf } from '../fault';
import { openForReading, type Database } from '../sqlite/database';
import { startThread } from '../sqlite/thread';
import type { KeyUses } from './key-uses';

export interface KeyUse {
  readonly tenantId: string;
  readonly keyId: string;
  readonly at: string;
}

export interface KeyUsesOptions {
  readonly periodMs?: number;
  readonly mostKeys?: number;
}

const PERIOD_MS = 60_000;

/** Uses that come together are written together. */
const GATHER_MS = 500;
const WRITE_MS = 10_000;

/** Of more keys than this it is forgotten, oldest first, when they were written: then they are written more often. */
const MOST_KEYS = 10_000;

/** Last uses in `key-uses.db`. The writing thread starts with the first use: commands never need it. */
export const sqliteKeyUses = (
  folder: string,
  { periodMs = PERIOD_MS, mostKeys = MOST_KEYS }: KeyUsesOptions = {},
): KeyUses => {
  const path = join(folder, 'key-uses.db');
  const thread = startThread(join(__dirname, 'sqlite-key-uses-thread.js'), { path });
  const writtenAt = new Map<string, number>();
  let gathered: KeyUse[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<unknown> = Promise.resolve();
  let db: Database | undefined;

  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const uses = gathered;
    gathered = [];
    if (uses.length > 0) writing = thread.call(uses, WRITE_MS).catch(() => undefined);
  };

  const remember = (keyId: string, now: number): void => {
    writtenAt.delete(keyId);
    writtenAt.set(keyId, now);
    const [oldest] = writtenAt.keys();
    if (writtenAt.size > mostKeys && oldest !== undefined) writtenAt.delete(oldest);
  };

  const rowsOf = (tenantId: string): unknown => {
    try {
      db ??= openForReading(path);
      return db.prepare('SELECT key_id, used_at FROM key_uses WHERE tenant_id = ?').all(tenantId);
    } catch (error) {
      const what = `The last uses of keys in ${path} cannot be read (${messageOf(error)}).`;
      throw fault('data_dir_unusable', `${what} Delete the file: another one is made.`);
    }
  };

  return {
    used: (tenantId, keyId, at) => {
      const now = monotonicMs();
      if (now - (writtenAt.get(keyId) ?? -Infinity) < periodMs) return;
      remember(keyId, now);
      gathered.push({ tenantId, keyId, at });
      timer ??= setTimeout(write, GATHER_MS).unref();
    },
    lastUses: async (tenantId) => {
      if (!existsSync(path)) return new Map();
      const rows = rowsOf(tenantId);
      return new Map((rows as { key_id: string; used_at: string }[]).map((row) => [row.key_id, row.used_at]));
    },
    close: async () => {
      write();
      await writing;
      await thread.close();
      if (db?.isOpen === true) db.close();
    },
  };
};
