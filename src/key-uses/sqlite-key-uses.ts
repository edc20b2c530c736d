import { join } from 'node:path';
import { BACKGROUND_MS } from '../async/clock';
import { answerInPlace, type Thread, type ThreadBody } from '../async/thread';
import { inTransaction, isBusy, type Database } from '../sqlite/database';
import { disposableFile, disposableWriter } from '../sqlite/disposable-file';
import { fault, messageOf } from '../fault';
import { add, type KeyDay, type KeyUses, type Tally } from './key-uses';
import { batchedUses, type KeyUsesOptions } from './batched-uses';

interface ChangedDays {
  readonly added?: readonly KeyDay[];
  readonly removed?: readonly KeyDay[];
}

const THIS_DAY = 'WHERE date = ? AND tenant_id = ? AND key_id = ?';

const prepared = (db: Database) => {
  db.exec(
    `CREATE TABLE IF NOT EXISTS key_uses (
       tenant_id TEXT NOT NULL, key_id TEXT NOT NULL, used_at TEXT NOT NULL, PRIMARY KEY (tenant_id, key_id)
     ) WITHOUT ROWID;
     CREATE TABLE IF NOT EXISTS key_days (
       date TEXT NOT NULL, tenant_id TEXT NOT NULL, key_id TEXT NOT NULL, day TEXT NOT NULL,
       PRIMARY KEY (date, tenant_id, key_id)
     ) WITHOUT ROWID`,
  );
  return {
    /** Keeps the latest use, in whatever order several processes write. */
    upsertUse: db.prepare(
      `INSERT INTO key_uses VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET used_at = MAX(used_at, excluded.used_at)`,
    ),
    findDay: db.prepare(`SELECT day FROM key_days ${THIS_DAY}`),
    putDay: db.prepare('INSERT OR REPLACE INTO key_days VALUES (?, ?, ?, ?)'),
    deleteDay: db.prepare(`DELETE FROM key_days ${THIS_DAY}`),
  };
};

type Statements = ReturnType<typeof prepared>;

const keyOf = ({ date, tenantId, keyId }: KeyDay) => [date, tenantId, keyId] as const;

const apply = (on: Statements, { added = [], removed = [] }: ChangedDays): void => {
  for (const day of added) {
    const stored = on.findDay.get(...keyOf(day)) as { day: string } | undefined;
    const tally = stored === undefined ? undefined : (JSON.parse(stored.day) as Tally);
    if (tally !== undefined) add(tally, day);
    on.putDay.run(...keyOf(day), JSON.stringify(tally ?? day));
    on.upsertUse.run(day.tenantId, day.keyId, day.lastAt);
  }
  for (const day of removed) on.deleteDay.run(...keyOf(day));
};

/** Answers requests to count uses of keys in a file. */
export const countingUses = (path: string): ThreadBody => {
  const file = disposableWriter(path, prepared);
  return {
    answer: (requests) =>
      file.use((db, on) =>
        inTransaction(db, () => {
          for (const request of requests as readonly ChangedDays[]) apply(on, request);
          return requests.map(() => ({ value: true }));
        }),
      ),
    isRetried: isBusy,
    close: file.close,
  };
};

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
  const one = db.prepare(`SELECT day FROM key_days ${THIS_DAY}`);
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
  const change = (changes: ChangedDays): Promise<unknown> =>
    file.write(() => thread.call(changes, BACKGROUND_MS));
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
