import {
  checkpointAndClose,
  inTransaction,
  openForWriting,
  neverWait,
  type Database,
} from '../../sqlite/database';
import { BEING_REMOVED } from '../damage';
import { isGone } from '../lease-holder';
import type { GenerationId, Registry, RemovalGuard } from '../read-models';
import type { InThisThread } from './generation-reader';

type RegistryWrites = { readonly [W in RegistryWrite]: InThisThread<Registry[W]> };
export type RegistryWrite = 'makeLive' | 'lease' | 'release' | 'requestRetry';

/** The writing side of `registry.db`. */
export interface RegistryWriter extends RegistryWrites {
  /** Adds a generation once `make` has created its file. */
  add<T>(id: GenerationId, make: () => T): T;
  /** Does something about a generation that does not exist, and that nobody can create meanwhile. */
  unlessKnown(id: GenerationId, work: () => void): void;
  /** Undefined: there is no such generation. */
  find(id: GenerationId): { readonly damage: string | null } | undefined;
  markDamaged(id: GenerationId, why: string): void;
  /** Marks it, so that nobody uses it any more, and then it can be deleted. False: something refuses it. */
  beginRemoval(id: GenerationId, unless: RemovalGuard): boolean;
  endRemoval(id: GenerationId): void;
  close(): void;
}

export interface LeaseRow {
  readonly what: string;
  readonly holder: string;
  readonly until: number;
  readonly note: string;
}

export const LEASE_MS = 10_000;

/** Also if it seems to last for longer than any does: then the clock has been set back since. */
export const isExpired = ({ holder, until }: LeaseRow, now: number): boolean =>
  until <= now || until > now + LEASE_MS || isGone(holder);

/** Which of the generations beside a new registry were live, or even complete, is not known any more. */
const rowOfUnknown = ({ projection, version, generation }: GenerationId): string =>
  `INSERT INTO generations VALUES ('${projection}', ${version}, '${generation}', 0, NULL, 'the registry that listed it was lost.');`;

const SCHEMA = `
  CREATE TABLE generations (
    projection TEXT, version INTEGER, generation TEXT, is_live INTEGER NOT NULL, left_at INTEGER, damage TEXT,
    PRIMARY KEY (projection, version, generation)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX one_live ON generations (projection, version) WHERE is_live = 1;
  CREATE TABLE leases (
    what TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL, note TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE retries (only INTEGER PRIMARY KEY CHECK (only = 1), count INTEGER NOT NULL, tenant_id TEXT);`;

/** `generations` lists those that exist before there is a registry. Several processes may create it at once. */
const createTables = (db: Database, generations: () => readonly GenerationId[]): void => {
  const tables = db.prepare('SELECT 1 FROM sqlite_master');
  if (tables.get() !== undefined) return;
  inTransaction(db, () => {
    if (tables.get() === undefined) db.exec(`${SCHEMA}${generations().map(rowOfUnknown).join('')}`);
  });
};

const WHICH = 'projection = ? AND version = ? AND generation = ?';

const keyOf = ({ projection, version, generation }: GenerationId) =>
  [projection, version, generation] as const;

const statementsOn = (db: Database) => ({
  add: db.prepare('INSERT INTO generations VALUES (?, ?, ?, 0, NULL, NULL)'),
  find: db.prepare(`SELECT is_live, left_at, damage FROM generations WHERE ${WHICH}`),
  live: db.prepare('SELECT generation FROM generations WHERE projection = ? AND version = ? AND is_live = 1'),
  leave: db.prepare(`UPDATE generations SET is_live = 0, left_at = ? WHERE ${WHICH}`),
  enter: db.prepare(`UPDATE generations SET is_live = 1, left_at = NULL WHERE ${WHICH}`),
  damage: db.prepare(`UPDATE generations SET damage = coalesce(damage, ?) WHERE ${WHICH}`),
  retire: db.prepare(
    `UPDATE generations SET is_live = 0, damage = coalesce(damage, '${BEING_REMOVED}') WHERE ${WHICH}`,
  ),
  forget: db.prepare(`DELETE FROM generations WHERE ${WHICH}`),
  lease: db.prepare('SELECT what, holder, until, note FROM leases WHERE what = ?'),
  take: db.prepare('INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)'),
  free: db.prepare('DELETE FROM leases WHERE what = ? AND holder = ?'),
  ask: db.prepare(
    `INSERT INTO retries VALUES (1, 1, ?)
     ON CONFLICT (only) DO UPDATE SET count = count + 1, tenant_id = excluded.tenant_id`,
  ),
});

type Statements = ReturnType<typeof statementsOn>;

interface Row {
  readonly is_live: number;
  readonly left_at: number | null;
  readonly damage: string | null;
}

const rowOf = ({ find }: Statements, id: GenerationId): Row | undefined =>
  find.get(...keyOf(id)) as Row | undefined;

const holderOf = ({ lease }: Statements, what: string): string | undefined => {
  const row = lease.get(what) as LeaseRow | undefined;
  return row === undefined || isExpired(row, Date.now()) ? undefined : row.holder;
};

const isRefused = (on: Statements, id: GenerationId, unless: RemovalGuard): boolean => {
  const row = rowOf(on, id);
  if (unless.held?.some((what) => holderOf(on, what) !== undefined) === true) return true;
  if (unless.live === true && row?.is_live === 1) return true;
  const left = row?.left_at ?? undefined;
  return left !== undefined && Math.abs(Date.now() - left) < (unless.leftWithinMs ?? 0);
};

const makeLive = (on: Statements, id: GenerationId, expected: string | undefined): boolean => {
  const row = rowOf(on, id);
  const now = on.live.get(id.projection, id.version) as { generation: string } | undefined;
  if (row === undefined || row.damage !== null || now?.generation !== expected) return false;
  if (now?.generation === id.generation) return true;
  if (now !== undefined) on.leave.run(Date.now(), id.projection, id.version, now.generation);
  on.enter.run(...keyOf(id));
  return true;
};

/** `generations` lists the existing ones. */
export const openRegistryWriter = (
  path: string,
  generations: () => readonly GenerationId[],
): RegistryWriter => {
  const db = openForWriting(path, 'NORMAL');
  createTables(db, generations);
  neverWait(db);
  const on = statementsOn(db);
  return {
    add: (id, make) =>
      inTransaction(db, () => {
        on.add.run(...keyOf(id));
        return make();
      }),
    unlessKnown: (id, work) =>
      inTransaction(db, () => {
        if (rowOf(on, id) === undefined) work();
      }),
    find: (id) => rowOf(on, id),
    makeLive: (id, expected) => inTransaction(db, () => makeLive(on, id, expected)),
    markDamaged: (id, why) => void on.damage.run(why, ...keyOf(id)),
    beginRemoval: (id, unless) =>
      inTransaction(db, () => {
        if (rowOf(on, id) === undefined || isRefused(on, id, unless)) return false;
        on.retire.run(...keyOf(id));
        return true;
      }),
    endRemoval: (id) => void on.forget.run(...keyOf(id)),
    lease: (names, holder, note = '') =>
      inTransaction(db, () => {
        const held = names.filter((what) => [undefined, holder].includes(holderOf(on, what)));
        for (const what of held) on.take.run(what, holder, Date.now() + LEASE_MS, note);
        return new Set(held);
      }),
    release: (names, holder) => {
      inTransaction(db, () => names.forEach((what) => on.free.run(what, holder)));
    },
    requestRetry: (tenantId) => void on.ask.run(tenantId ?? null),
    close: () => checkpointAndClose(db),
  };
};
