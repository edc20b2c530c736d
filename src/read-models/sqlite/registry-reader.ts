import { fault, messageOf } from '../../fault';
import { dataVersion, openForReading } from '../../sqlite/database';
import type { GenerationId, Pointer, RetryRequests } from '../read-models';
import { damageMarkOf, removalOf, RETRY } from './registry-writer';
import { isGone } from './lease-holder';

/** The reading side of `index.db`. */
export interface RegistryReader {
  /** Changes with every change of the file. */
  changes(): number;
  pointer(projection: string, version: number): Pointer | undefined;
  liveLately(projection: string, version: number, withinMs: number): readonly number[];
  isRemoved(id: GenerationId): boolean;
  damageOf(id: GenerationId): string | undefined;
  held(what: string): Held | undefined;
  retryRequests(): RetryRequests;
  close(): void;
}

interface Held {
  readonly holder: string;
  readonly note: string;
}

interface Known {
  readonly pointer: Pointer | undefined;
  readonly left: readonly { readonly generation: number; readonly left_at: number }[];
}

/** Throws what SQLite says about a damaged index. It is small, so all of it is read. */
export const checkIndex = (path: string): void => {
  const db = openForReading(path);
  try {
    for (const table of ['pointers', 'leases', 'askings']) db.prepare(`SELECT * FROM ${table}`).all();
  } finally {
    db.close();
  }
};

/** A running process keeps the index open, so only a restart replaces it. */
const orUnavailable = <T>(path: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    const what = `The index of the read models ${path} cannot be read: ${messageOf(error)}.`;
    throw fault('read_models_unavailable', `${what} Restart the service: it builds them again from the log.`);
  }
};

export const openRegistryReader = (path: string): RegistryReader => {
  const reader = registryReader(path);
  return {
    ...reader,
    changes: () => orUnavailable(path, reader.changes),
    pointer: (...of) => orUnavailable(path, () => reader.pointer(...of)),
    liveLately: (...of) => orUnavailable(path, () => reader.liveLately(...of)),
    held: (what) => orUnavailable(path, () => reader.held(what)),
  };
};

const registryReader = (path: string): RegistryReader => {
  const db = openForReading(path);
  const pointer = db.prepare('SELECT live, previous FROM pointers WHERE projection = ? AND version = ?');
  const left = db.prepare('SELECT generation, left_at FROM switches WHERE projection = ? AND version = ?');
  const removed = db.prepare(`SELECT 1 FROM askings WHERE what = ? AND NOT EXISTS (
    SELECT 1 FROM pointers WHERE projection = ? AND version = ? AND live = ?)`);
  const holder = db.prepare('SELECT holder, note FROM leases WHERE what = ? AND until >= ?');
  const askings = db.prepare('SELECT times, note FROM askings WHERE what = ?');

  const look = (projection: string, version: number): Known => {
    const row = pointer.get(projection, version) as { live: number; previous: number | null } | undefined;
    // Read after the pointer, so that both sides of a switch in between are known.
    const rows = left.all(projection, version) as unknown as Known['left'];
    if (row === undefined) return { pointer: undefined, left: rows };
    const previous = row.previous === null ? {} : { previous: row.previous };
    return { pointer: { live: row.live, ...previous }, left: rows };
  };

  return {
    changes: dataVersion(db),
    pointer: (projection, version) => look(projection, version).pointer,
    liveLately: (projection, version, withinMs) => {
      const found = look(projection, version);
      const now = Date.now();
      return found.left
        .filter(({ generation, left_at }) => {
          return generation !== found.pointer?.live && Math.abs(now - left_at) < withinMs;
        })
        .map(({ generation }) => generation);
    },
    isRemoved: (id) => removed.get(removalOf(id), id.projection, id.version, id.generation) !== undefined,
    damageOf: (id) => (askings.get(damageMarkOf(id)) as { note: string } | undefined)?.note,
    held: (what) => {
      const found = holder.get(what, Date.now()) as Held | undefined;
      return found === undefined || isGone(found.holder) ? undefined : found;
    },
    retryRequests: () => {
      const row = askings.get(RETRY) as { times: number; note: string } | undefined;
      if (row === undefined) return { count: 0 };
      return { count: row.times, ...(row.note === '' ? {} : { tenantId: row.note }) };
    },
    close: () => db.close(),
  };
};
