import {
  closeTidily,
  inTransaction,
  migrate,
  openForWriting,
  waitBriefly,
  type Database,
} from '../../sqlite/database';
import {
  generationName,
  generationRemoved,
  type GenerationId,
  type Pointer,
  type Registry,
  type RemovalRefused,
} from '../read-models';
import { isGone } from './lease-holder';

/** The writes of the port's registry. */
export type RegistryWrite = 'point' | 'markRemoved' | 'nextNumber' | 'lease' | 'release' | 'requestRetry';

/** The same, but synchronous. */
type RegistryWrites = {
  readonly [W in RegistryWrite]: (...args: Parameters<Registry[W]>) => Awaited<ReturnType<Registry[W]>>;
};

/** The writing side of `index.db`: live and removed generations, and leases. */
export interface RegistryWriter extends RegistryWrites {
  /** Runs `make` unless the generation was removed, and keeps it from being removed meanwhile. */
  unlessRemoved<T>(id: GenerationId, make: () => T): T;
  isPointedAt(id: GenerationId): boolean;
  damageOf(id: GenerationId): string | undefined;
  markDamaged(id: GenerationId, why: string): void;
  close(): void;
}

/** The longest lease. One that seems longer comes from a clock that has been set back since. */
const MAX_LEASE_MS = 600_000;

/**
 * The table `askings` counts these. Neither its name nor theirs may change, because every program that shares the file
 * must know what is removed.
 */
export const RETRY = 'retry';
export const removalOf = (id: GenerationId): string => `remove ${generationName(id)}`;
export const damageMarkOf = (id: GenerationId): string => `damaged ${generationName(id)}`;
const numbersOf = (projection: string, version: number): string => `numbers ${projection}_v${version}`;

/** Which of the generations beside an index without pointers were live, or even complete, is not known any more. */
const marksWithout = (generations: readonly GenerationId[]): string =>
  generations
    .map(
      (id) => `INSERT INTO askings SELECT '${damageMarkOf(id)}', 1, 'the index of the read models was lost.'
        WHERE NOT EXISTS (SELECT 1 FROM pointers);`,
    )
    .join('');

/** `generations` are those that exist. */
const migrations = (generations: readonly GenerationId[]): readonly string[] => [
  `CREATE TABLE pointers (
     projection TEXT, version INTEGER, live INTEGER NOT NULL, previous INTEGER, PRIMARY KEY (projection, version)
   ) WITHOUT ROWID;
   CREATE TABLE leases (
     what TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL, note TEXT NOT NULL
   ) WITHOUT ROWID;
   CREATE TABLE askings (what TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID;`,
  `ALTER TABLE askings ADD COLUMN note TEXT NOT NULL DEFAULT ''; ${marksWithout(generations)}`,
];

/** Not a migration step, so that programs without this table can still use the file. */
const SWITCHES = `CREATE TABLE IF NOT EXISTS switches (
  projection TEXT, version INTEGER, generation INTEGER, left_at INTEGER NOT NULL,
  PRIMARY KEY (projection, version, generation)
) WITHOUT ROWID;`;

const statementsOn = (db: Database) => ({
  pointer: db.prepare('SELECT live, previous FROM pointers WHERE projection = ? AND version = ?'),
  setPointer: db.prepare('INSERT OR REPLACE INTO pointers VALUES (?, ?, ?, ?)'),
  removePointer: db.prepare('DELETE FROM pointers WHERE projection = ? AND version = ?'),
  setLeft: db.prepare('INSERT OR REPLACE INTO switches VALUES (?, ?, ?, ?)'),
  held: db.prepare('SELECT holder, until FROM leases WHERE what = ?'),
  take: db.prepare('INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)'),
  free: db.prepare('DELETE FROM leases WHERE what = ? AND holder = ?'),
  count: db.prepare(
    'INSERT INTO askings VALUES (?, 1, ?) ON CONFLICT (what) DO UPDATE SET times = times + 1, note = excluded.note',
  ),
  counted: db.prepare('SELECT times FROM askings WHERE what = ?'),
  noted: db.prepare('SELECT note FROM askings WHERE what = ?'),
  setCount: db.prepare(`INSERT OR REPLACE INTO askings VALUES (?, ?, '')`),
  removeCount: db.prepare('DELETE FROM askings WHERE what = ?'),
  namesLike: db.prepare('SELECT what FROM askings WHERE what GLOB ?'),
});

type Statements = ReturnType<typeof statementsOn>;

const pointerOf = ({ pointer }: Statements, projection: string, version: number): Pointer | undefined => {
  const row = pointer.get(projection, version) as { live: number; previous: number | null } | undefined;
  if (row === undefined) return undefined;
  return { live: row.live, ...(row.previous === null ? {} : { previous: row.previous }) };
};

/** A mark on a live generation does not count: earlier programs set it before checking. */
const isMarked = (on: Statements, { projection, version, generation }: GenerationId): boolean =>
  on.counted.get(removalOf({ projection, version, generation })) !== undefined &&
  pointerOf(on, projection, version)?.live !== generation;

/** The holder of a lease that has not expired. */
const holderOf = ({ held }: Statements, what: string): string | undefined => {
  const now = held.get(what) as { holder: string; until: number } | undefined;
  if (now === undefined || now.until < Date.now() || now.until > Date.now() + MAX_LEASE_MS) return undefined;
  return isGone(now.holder) ? undefined : now.holder;
};

const damageOf = ({ noted }: Statements, id: GenerationId): string | undefined =>
  (noted.get(damageMarkOf(id)) as { note: string } | undefined)?.note;

const point = (
  on: Statements,
  projection: string,
  version: number,
  to: Pointer,
  believed: Pointer | undefined,
): boolean => {
  const now = pointerOf(on, projection, version);
  if (now?.live !== believed?.live || now?.previous !== believed?.previous) return false;
  const named = [to.live, ...(to.previous === undefined ? [] : [to.previous])];
  if (named.some((generation) => isMarked(on, { projection, version, generation }))) return false;
  if (now !== undefined && now.live !== to.live) {
    on.removeCount.run(removalOf({ projection, version, generation: now.live }));
    on.setLeft.run(projection, version, now.live, Date.now());
  }
  on.setPointer.run(projection, version, to.live, to.previous ?? null);
  return true;
};

const markRemoved = (on: Statements, id: GenerationId, unless: RemovalRefused): boolean => {
  const { projection, version, generation } = id;
  const now = pointerOf(on, projection, version);
  if (holderOf(on, unless.held) !== undefined) return false;
  if (now?.live === generation && unless.live) return false;
  if (now?.live === generation) on.removePointer.run(projection, version);
  else if (now?.previous === generation) on.setPointer.run(projection, version, now.live, null);
  on.count.run(removalOf(id), '');
  return true;
};

const nextNumber = (
  on: Statements,
  projection: string,
  version: number,
  generations: readonly GenerationId[],
): number => {
  const what = numbersOf(projection, version);
  const { times } = (on.counted.get(what) as { times: number } | undefined) ?? { times: 0 };
  const removed = on.namesLike.all(`remove ${projection}_v${version}_*`) as { what: string }[];
  const numbers = removed.map((row) => Number(row.what.slice(row.what.lastIndexOf('_') + 1)));
  const existing = generations.filter((id) => id.projection === projection && id.version === version);
  const last = Math.max(times + 1, ...existing.map((id) => id.generation), ...numbers);
  on.setCount.run(what, last);
  return last + 1;
};

/** `generations` lists the existing ones. */
export const openRegistryWriter = (
  path: string,
  generations: () => readonly GenerationId[],
): RegistryWriter => {
  const db = openForWriting(path, 'NORMAL');
  migrate(db, migrations(generations()), `The index of the read models ${path}`);
  db.exec(SWITCHES);
  waitBriefly(db);
  const on = statementsOn(db);
  return {
    point: (projection, version, to, believed) =>
      inTransaction(db, () => point(on, projection, version, to, believed)),
    markRemoved: (id, unless) => inTransaction(db, () => markRemoved(on, id, unless)),
    unlessRemoved: (id, make) =>
      inTransaction(db, () => {
        if (isMarked(on, id)) throw generationRemoved(id);
        return make();
      }),
    isPointedAt: ({ projection, version, generation }) => {
      const now = pointerOf(on, projection, version);
      return now?.live === generation || now?.previous === generation;
    },
    damageOf: (id) => damageOf(on, id),
    markDamaged: (id, why) =>
      inTransaction(db, () => {
        if (damageOf(on, id) === undefined) on.count.run(damageMarkOf(id), why);
      }),
    nextNumber: (projection, version) =>
      inTransaction(db, () => nextNumber(on, projection, version, generations())),
    lease: (what, holder, forMs, note = '') =>
      inTransaction(db, () => {
        const now = holderOf(on, what);
        const isFree = now === undefined || now === holder;
        if (isFree) on.take.run(what, holder, Date.now() + forMs, note);
        return isFree;
      }),
    release: (what, holder) => void on.free.run(what, holder),
    requestRetry: (tenantId = '') => void on.count.run(RETRY, tenantId),
    close: () => closeTidily(db),
  };
};
