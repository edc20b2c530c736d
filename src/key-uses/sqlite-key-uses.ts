import { join } from 'node:path';
import { answerInPlace, type Thread } from '../async/thread';
import { fault, messageOf } from '../fault';
import type { Database } from '../sqlite/database';
import { disposableFile } from '../sqlite/disposable-file';
import { batchedUses, type KeyUsesOptions } from './batched-uses';
import type { KeyDay, KeyUses } from './key-uses';
import { countingUses, type ChangedDays } from './sqlite-key-uses-writer';

const WRITE_MS = 10_000;

interface DayRow {
  readonly day: string;
}

const dayOf = ({ day }: DayRow): KeyDay => JSON.parse(day) as KeyDay;

const lastUses = (
  db: Database,
  tenantId: string,
  keyIds?: readonly string[],
): ReadonlyMap<string, string> => {
  const all = 'SELECT key_id, used_at FROM key_uses WHERE tenant_id = ?';
  const single = keyIds === undefined ? undefined : db.prepare(`${all} AND key_id = ?`);
  const rows =
    keyIds?.flatMap((keyId) => single?.get(tenantId, keyId) ?? []) ?? db.prepare(all).all(tenantId);
  return new Map((rows as { key_id: string; used_at: string }[]).map((row) => [row.key_id, row.used_at]));
};

const days = (db: Database, tenantId: string, keyId: string, dates: readonly string[]): readonly KeyDay[] => {
  const one = db.prepare('SELECT day FROM key_days WHERE date = ? AND tenant_id = ? AND key_id = ?');
  return dates.flatMap((date) => (one.get(date, tenantId, keyId) as DayRow | undefined) ?? []).map(dayOf);
};

const daysBefore = (db: Database, date: string, limit: number, after?: KeyDay): readonly KeyDay[] => {
  const rows = db
    .prepare(
      `SELECT day FROM key_days WHERE date < ? AND (date, tenant_id, key_id) > (?, ?, ?)
       ORDER BY date, tenant_id, key_id LIMIT ?`,
    )
    .all(date, after?.date ?? '', after?.tenantId ?? '', after?.keyId ?? '', limit);
  return (rows as unknown as DayRow[]).map(dayOf);
};

export const keyUsesPath = (folder: string): string => join(folder, 'key-uses.db');

/** Stored in `key-uses.db`. */
export const sqliteKeyUses = (folder: string, options: KeyUsesOptions = {}, writer?: Thread): KeyUses => {
  const path = keyUsesPath(folder);
  const thread = writer ?? answerInPlace(() => countingUses(path));
  const file = disposableFile(path, options.report ?? (() => undefined));
  const change = (changes: ChangedDays): Promise<unknown> => file.write(() => thread.call(changes, WRITE_MS));
  const { used, close } = batchedUses((added) => change({ added }), options);

  const read = <T>(query: (db: Database) => T, none: NoInfer<T>): T => {
    try {
      return file.read(query) ?? none;
    } catch (error) {
      throw fault('data_dir_unusable', `The uses of keys in ${path} cannot be read: ${messageOf(error)}`);
    }
  };

  return {
    used,
    lastUses: async (tenantId, keyIds) => read((db) => lastUses(db, tenantId, keyIds), new Map()),
    days: async (tenantId, keyId, dates) => read((db) => days(db, tenantId, keyId, dates), []),
    daysBefore: async (date, limit, after) => read((db) => daysBefore(db, date, limit, after), []),
    remove: async (removed) => void (await change({ removed })),
    close: async () => {
      await close();
      await thread.close();
      file.close();
    },
  };
};
