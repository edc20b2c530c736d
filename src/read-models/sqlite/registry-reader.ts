import { existsSync, statSync } from 'node:fs';
import { fault, messageOf } from '../../fault';
import { dataVersion, inReadTransaction, openForReading } from '../../sqlite/database';
import type { HeldLease, RegistryState, StoredGeneration } from '../read-models';
import { isExpired, type LeaseRow } from './registry-writer';

/** The reading side of `registry.db`. While there is no such file, nothing exists. */
export interface RegistryReader {
  /** Changes with every change of the file. */
  token(): number;
  state(): RegistryState;
  close(): void;
}

interface GenerationRow {
  readonly projection: string;
  readonly version: number;
  readonly generation: string;
  readonly is_live: number;
  readonly left_at: number | null;
  readonly damage: string | null;
}

const NOTHING: RegistryState = { generations: [], leases: new Map(), retries: { count: 0 } };

const storedGeneration = (
  { projection, version, generation, is_live, left_at, damage }: GenerationRow,
  now: number,
): StoredGeneration => ({
  projection,
  version,
  generation,
  isLive: is_live === 1,
  ...(left_at === null ? {} : { leftMs: Math.abs(now - left_at) }),
  ...(damage === null ? {} : { damage }),
});

const openRegistry = (path: string) => {
  const db = openForReading(path);
  const generations = db.prepare(
    'SELECT projection, version, generation, is_live, left_at, damage FROM generations',
  );
  const leases = db.prepare('SELECT what, holder, until, note FROM leases');
  const retries = db.prepare('SELECT count, tenant_id FROM retries');
  const read = (): RegistryState => {
    const now = Date.now();
    const held = (leases.all() as unknown as LeaseRow[]).filter((row) => !isExpired(row, now));
    const asked = retries.get() as { count: number; tenant_id: string | null } | undefined;
    return {
      generations: (generations.all() as unknown as GenerationRow[]).map((row) => storedGeneration(row, now)),
      leases: new Map(held.map(({ what, holder, note }): [string, HeldLease] => [what, { holder, note }])),
      retries: {
        count: asked?.count ?? 0,
        ...(typeof asked?.tenant_id === 'string' ? { tenantId: asked.tenant_id } : {}),
      },
    };
  };
  return {
    db,
    token: dataVersion(db),
    /** In a transaction, so that a switch in between shows both of its sides. */
    state: () => inReadTransaction(db, read),
  };
};

/** Another process is creating it, or was killed while it did: whoever writes to it completes it. */
const isBeingCreated = (path: string): boolean => {
  if (statSync(path).size === 0) return !existsSync(`${path}-wal`);
  const db = openForReading(path);
  try {
    return db.prepare('SELECT 1 FROM sqlite_master').get() === undefined;
  } finally {
    db.close();
  }
};

/** Throws what SQLite says about a damaged registry. It is small, so all of it is read. */
export const checkRegistry = (path: string): void => {
  if (isBeingCreated(path)) return;
  const { db, state } = openRegistry(path);
  try {
    state();
  } finally {
    db.close();
  }
};

export const registryReader = (path: string): RegistryReader => {
  let open: ReturnType<typeof openRegistry> | undefined;
  /** Undefined: there is no registry yet. A process that keeps a damaged one open must be restarted. */
  const using = <T>(use: (registry: ReturnType<typeof openRegistry>) => T): T | undefined => {
    if (open === undefined && !existsSync(path)) return undefined;
    try {
      return use((open ??= openRegistry(path)));
    } catch (error) {
      // Another process is creating it.
      if (open === undefined && messageOf(error).includes('no such table')) return undefined;
      const what = `The registry of the read models ${path} cannot be read: ${messageOf(error)}.`;
      throw fault(
        'read_models_unavailable',
        `${what} Restart the service: it builds them again from the log.`,
      );
    }
  };
  return {
    token: () => using(({ token }) => token()) ?? -1,
    state: () => using(({ state }) => state()) ?? NOTHING,
    close: () => open?.db.close(),
  };
};
