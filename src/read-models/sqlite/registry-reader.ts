import { dataVersion, openForReading } from '../../sqlite/database';
import type { GenerationId, Pointer, RetryRequests } from '../read-models';
import { removalOf, RETRY } from './registry-writer';
import { isGone } from './lease-holder';

/** The reading side of `index.db`. */
export interface RegistryReader {
  /** Changes with every change of the file. */
  changes(): number;
  pointer(projection: string, version: number): Pointer | undefined;
  liveLately(projection: string, version: number, withinMs: number): readonly number[];
  isRemoved(id: GenerationId): boolean;
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

export const openRegistryReader = (path: string): RegistryReader => {
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
