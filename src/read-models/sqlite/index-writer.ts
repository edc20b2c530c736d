import { fault } from '../../fault';
import { closeTidily, inTransaction, migrate, openForWriting, waitBriefly } from '../../sqlite/database';
import { generationName, type GenerationId, type Pointer, type RemovalRefused } from '../read-models';
import { isGone } from './lease-holder';

/** The writing side of `index.db`: which generation is live, which are removed, and who holds which lease. */
export interface IndexWriter {
  point(projection: string, version: number, to: Pointer, believed: Pointer | undefined): boolean;
  markRemoved(id: GenerationId, unless: RemovalRefused): boolean;
  /** Makes what belongs to a generation, which nobody can mark as removed meanwhile. */
  unlessRemoved<T>(id: GenerationId, make: () => T): T;
  /** `there`: the numbers of the generations that there are. */
  nextNumber(projection: string, version: number, there: readonly number[]): number;
  lease(what: string, holder: string, forMs: number, note: string): boolean;
  release(what: string, holder: string): void;
  /** The empty text stands for all tenants. */
  requestRetry(tenantId: string): void;
  close(): void;
}

/** No lease is taken for longer: one that seems to be comes from a clock that was set back. */
const LONGEST_MS = 600_000;

/** The names of these rows are as old as the file: every program that shares it must know what is removed. */
export const RETRY = 'retry';
export const removalOf = (id: GenerationId): string => `remove ${generationName(id)}`;
const numbersOf = (projection: string, version: number): string => `numbers ${projection}_v${version}`;

/** Not a step of the migration: a program that does not know this table goes on with the file as well. */
const SWITCHES = `CREATE TABLE IF NOT EXISTS switches (
  projection TEXT, version INTEGER, generation INTEGER, left_at INTEGER NOT NULL,
  PRIMARY KEY (projection, version, generation)
) WITHOUT ROWID;`;

interface PointerRow {
  readonly live: number;
  readonly previous: number | null;
}

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
  db.exec(SWITCHES);
  waitBriefly(db);
  const pointer = db.prepare('SELECT live, previous FROM pointers WHERE projection = ? AND version = ?');
  const setPointer = db.prepare('INSERT OR REPLACE INTO pointers VALUES (?, ?, ?, ?)');
  const removePointer = db.prepare('DELETE FROM pointers WHERE projection = ? AND version = ?');
  const setLeft = db.prepare('INSERT OR REPLACE INTO switches VALUES (?, ?, ?, ?)');
  const held = db.prepare('SELECT holder, until FROM leases WHERE what = ?');
  const take = db.prepare('INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)');
  const free = db.prepare('DELETE FROM leases WHERE what = ? AND holder = ?');
  const ask = db.prepare(
    'INSERT INTO askings VALUES (?, 1, ?) ON CONFLICT (what) DO UPDATE SET times = times + 1, note = excluded.note',
  );
  const asked = db.prepare('SELECT times FROM askings WHERE what = ?');
  const setAsked = db.prepare(`INSERT OR REPLACE INTO askings VALUES (?, ?, '')`);
  const unask = db.prepare('DELETE FROM askings WHERE what = ?');
  const askedLike = db.prepare('SELECT what FROM askings WHERE what GLOB ?');

  const pointerOf = (projection: string, version: number): PointerRow | undefined =>
    pointer.get(projection, version) as PointerRow | undefined;

  const isMarked = (projection: string, version: number, generation: number | undefined): boolean =>
    generation !== undefined &&
    asked.get(removalOf({ projection, version, generation })) !== undefined &&
    pointerOf(projection, version)?.live !== generation;

  /** Who holds a lease that has not ended. */
  const holderOf = (what: string): string | undefined => {
    const now = held.get(what) as { holder: string; until: number } | undefined;
    if (now === undefined || now.until < Date.now() || now.until > Date.now() + LONGEST_MS) return undefined;
    return isGone(now.holder) ? undefined : now.holder;
  };

  /** A mark on what is live is left by a program that marked first and looked then: it does not count. */
  const leave = (projection: string, version: number, generation: number): void => {
    unask.run(removalOf({ projection, version, generation }));
    setLeft.run(projection, version, generation, Date.now());
  };

  return {
    point: (projection, version, to, believed) =>
      inTransaction(db, () => {
        const now = pointerOf(projection, version);
        if (now?.live !== believed?.live || (now?.previous ?? undefined) !== believed?.previous) return false;
        if (isMarked(projection, version, to.live) || isMarked(projection, version, to.previous))
          return false;
        if (now !== undefined && now.live !== to.live) leave(projection, version, now.live);
        setPointer.run(projection, version, to.live, to.previous ?? null);
        return true;
      }),
    markRemoved: (id, unless) =>
      inTransaction(db, () => {
        const { projection, version, generation } = id;
        const now = pointerOf(projection, version);
        if (holderOf(unless.held) !== undefined) return false;
        if (now?.live === generation && unless.live) return false;
        if (now?.live === generation) removePointer.run(projection, version);
        else if (now?.previous === generation) setPointer.run(projection, version, now.live, null);
        ask.run(removalOf(id), '');
        return true;
      }),
    unlessRemoved: (id, make) =>
      inTransaction(db, () => {
        if (isMarked(id.projection, id.version, id.generation))
          throw fault('generation_removed', `The generation ${generationName(id)} is removed.`);
        return make();
      }),
    nextNumber: (projection, version, there) =>
      inTransaction(db, () => {
        const what = numbersOf(projection, version);
        const { times } = (asked.get(what) as { times: number } | undefined) ?? { times: 0 };
        const removed = askedLike.all(`remove ${projection}_v${version}_*`) as { what: string }[];
        const numbers = removed.map((row) => Number(row.what.slice(row.what.lastIndexOf('_') + 1)));
        const last = Math.max(times + 1, ...there, ...numbers);
        setAsked.run(what, last);
        return last + 1;
      }),
    lease: (what, holder, forMs, note) =>
      inTransaction(db, () => {
        const now = holderOf(what);
        const isFree = now === undefined || now === holder;
        if (isFree) take.run(what, holder, Date.now() + forMs, note);
        return isFree;
      }),
    release: (what, holder) => void free.run(what, holder),
    requestRetry: (tenantId) => void ask.run(RETRY, tenantId),
    close: () => closeTidily(db),
  };
};
