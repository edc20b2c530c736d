import { closeTidily, inTransaction, migrate, openForWriting, waitBriefly } from '../../sqlite/database';
import type { Pointer } from '../read-models';
import { isGone } from './lease-holder';

/** The writing side of `index.db`: which generation is live, and who holds which lease. */
export interface IndexWriter {
  point(projection: string, version: number, to: Pointer, believed: Pointer | undefined): boolean;
  lease(what: string, holder: string, forMs: number, note: string): boolean;
  release(what: string, holder: string): void;
  ask(what: string, note: string): void;
  close(): void;
}

/** No lease is taken for longer: one that seems to be comes from a clock that was set back. */
const LONGEST_MS = 600_000;

export const openIndexWriter = (path: string): IndexWriter => {
  const db = openForWriting(path, 'NORMAL');
  migrate(
    db,
    [
      `CREATE TABLE pointers (
         projection TEXT, version INTEGER, live INTEGER NOT NULL, previous INTEGER, PRIMARY KEY (projection, version)
       ) WITHOUT ROWID;
       CREATE TABLE leases (
         what TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL, note TEXT NOT NULL
       ) WITHOUT ROWID;
       CREATE TABLE askings (what TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID;`,
      `ALTER TABLE askings ADD COLUMN note TEXT NOT NULL DEFAULT '';`,
    ],
    `The index of the read models ${path}`,
  );
  waitBriefly(db);
  const pointer = db.prepare('SELECT live, previous FROM pointers WHERE projection = ? AND version = ?');
  const setPointer = db.prepare('INSERT OR REPLACE INTO pointers VALUES (?, ?, ?, ?)');
  const held = db.prepare('SELECT holder, until FROM leases WHERE what = ?');
  const take = db.prepare('INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)');
  const ask = db.prepare(
    'INSERT INTO askings VALUES (?, 1, ?) ON CONFLICT (what) DO UPDATE SET times = times + 1, note = excluded.note',
  );
  const free = db.prepare('DELETE FROM leases WHERE what = ? AND holder = ?');

  return {
    point: (projection, version, to, believed) =>
      inTransaction(db, () => {
        const now = pointer.get(projection, version) as { live: number; previous: number | null } | undefined;
        if (now?.live !== believed?.live || (now?.previous ?? undefined) !== believed?.previous) return false;
        setPointer.run(projection, version, to.live, to.previous ?? null);
        return true;
      }),
    lease: (what, holder, forMs, note) =>
      inTransaction(db, () => {
        const now = held.get(what) as { holder: string; until: number } | undefined;
        const isFree =
          now === undefined ||
          now.holder === holder ||
          now.until < Date.now() ||
          now.until > Date.now() + LONGEST_MS ||
          isGone(now.holder);
        if (isFree) take.run(what, holder, Date.now() + forMs, note);
        return isFree;
      }),
    release: (what, holder) => void free.run(what, holder),
    ask: (what, note) => void ask.run(what, note),
    close: () => closeTidily(db),
  };
};
