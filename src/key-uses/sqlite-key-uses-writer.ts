import type { ThreadBody } from '../async/thread';
import { inTransaction, isBusy, migrate, type Database } from '../sqlite/database';
import { disposableWriter } from '../sqlite/disposable-file';
import { add, type Tally } from './key-day';
import type { KeyDay } from './key-uses';

export interface ChangedDays {
  readonly added?: readonly KeyDay[];
  readonly removed?: readonly KeyDay[];
}

const THIS_DAY = 'WHERE date = ? AND tenant_id = ? AND key_id = ?';

const prepared = (path: string) => (db: Database) => {
  migrate(
    db,
    [
      `CREATE TABLE key_uses (
         tenant_id TEXT NOT NULL, key_id TEXT NOT NULL, used_at TEXT NOT NULL, PRIMARY KEY (tenant_id, key_id)
       ) WITHOUT ROWID;`,
    ],
    `The file of key uses ${path}`,
  );
  // Not a migration: programs that do not know this table must still be able to use the file.
  db.exec(
    `CREATE TABLE IF NOT EXISTS key_days (
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

type Statements = ReturnType<ReturnType<typeof prepared>>;

const keyOf = ({ date, tenantId, keyId }: KeyDay) => [date, tenantId, keyId] as const;

const change = (on: Statements, { added = [], removed = [] }: ChangedDays): void => {
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
  const file = disposableWriter(path, prepared(path));
  return {
    answer: (requests) =>
      file.use((db, on) =>
        inTransaction(db, () => {
          for (const request of requests as readonly ChangedDays[]) change(on, request);
          return requests.map(() => ({ value: true }));
        }),
      ),
    isRetried: isBusy,
    close: file.close,
  };
};
