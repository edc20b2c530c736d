import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Document } from '../../projections/projector';
import type { Head } from '../../src/event-log/event-log';
import type { ParkedTenant, Progress, TenantCommit } from '../../src/read-models/read-models';

/** A log of tenants' events for processes that drive a chain of sets: a line of a file each. Some of them are bad. */
export interface ChainEvent {
  readonly tenantId: string;
  readonly position: number;
  /** Nobody can apply it before it is mended. */
  readonly isBad: boolean;
}

export const TENANTS = ['1', '2', '3', '4'].map((n) => `${n.repeat(8)}-0000-4000-8000-000000000000`);
export const COLLECTIONS = [
  { name: 'totals', indexes: {} },
  { name: 'rows', indexes: { by_number: ['number'] } },
];
const MODULUS = 1_000_003;

/** A row is new, so a store may refuse it; tenants without rows show what nothing else would refuse. */
export const hasRows = (tenantId: string): boolean => TENANTS.indexOf(tenantId) % 2 === 0;

export const headAt = (position: number): Head => ({
  position: String(position).padStart(16, '0'),
  eventId: `00000000-0000-4000-8000-${String(position).padStart(12, '0')}`,
});

export const positionOf = (at: { readonly position?: unknown } | undefined): number =>
  Number(at?.position ?? 0);

export const totalOf = (tenantId: string) => ({ tenantId, collection: 'totals', key: 'all' });

const linesOf = (file: string): readonly string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];

export const chainLog = (folder: string) => {
  const [file, mendedFile] = [join(folder, 'events'), join(folder, 'mended')];
  let appended = 0;
  const read = (): readonly ChainEvent[] =>
    linesOf(file).map((line, i) => {
      const [tenantId = '', kind] = line.split(' ');
      return { tenantId, position: i + 1, isBad: kind === 'bad' };
    });
  return {
    read,
    /** The position. */
    append: (tenantId: string, isBad = false): number => {
      const line = `${tenantId} ${isBad ? 'bad' : 'good'} ${process.pid}.${(appended += 1)}`;
      appendFileSync(file, `${line}\n`);
      return linesOf(file).indexOf(line) + 1;
    },
    mend: (position: number): void => appendFileSync(mendedFile, `${position}\n`),
    mended: (): ReadonlySet<number> => new Set(linesOf(mendedFile).map(Number)),
  };
};

export type ChainLog = ReturnType<typeof chainLog>;

/** It reveals every event that was skipped, or applied twice or out of order. */
export const totalAfter = (before: Document | undefined, events: readonly Pick<ChainEvent, 'position'>[]) => {
  let { count, sum, position } = { count: 0, sum: 0, position: 0, ...before };
  for (const next of events)
    [count, sum, position] = [count + 1, (sum * 31 + next.position) % MODULUS, next.position];
  return { count, sum, position };
};

const parkedAt = ({ tenantId, position }: ChainEvent): ParkedTenant => ({
  tenant_id: tenantId,
  event_id: headAt(position).eventId,
  event_type: 'Event',
  position: headAt(position).position,
  recorded_at: new Date().toISOString(),
  cause: 'bad_event',
  reason: 'It is bad.',
  since: `${new Date().toISOString()} by ${process.pid}`,
  program: '1',
});

/** What becomes of a tenant whose next events these are. `isRest`: there are no more up to `readUpTo`. */
export const commitOf = (
  { before, total }: { before: Progress | undefined; total: Document | undefined },
  events: readonly ChainEvent[],
  { mended, readUpTo, isRest }: { mended: ReadonlySet<number>; readUpTo: number; isRest: boolean },
): TenantCommit => {
  const stop = events.findIndex(({ isBad, position }) => isBad && !mended.has(position));
  const good = stop < 0 ? events : events.slice(0, stop);
  const { tenantId } = events[0] as ChainEvent;
  const bad = events[stop];
  const kept = isRest ? undefined : before?.parked;
  const parked = bad === undefined ? kept : parkedAt(bad);
  const after = totalAfter(total, good);
  const rows = (hasRows(tenantId) ? good : []).map(({ position }, i) => ({
    tenantId,
    collection: 'rows',
    key: String(position),
    document: { number: after.count - good.length + 1 + i },
    isNew: true,
  }));
  const isNew = total === undefined;
  const last = good.at(-1)?.position;
  return {
    tenantId,
    writes: good.length === 0 ? [] : [...rows, { ...totalOf(tenantId), document: after, isNew }],
    progress: {
      tenant: (before?.tenant ?? -1) + good.length,
      activity: -1,
      position: last === undefined ? (before?.position ?? '') : headAt(last).position,
      ...(parked !== undefined && { parked }),
    },
    head: last === undefined ? undefined : headAt(last),
    readUpTo: headAt(readUpTo).position,
  };
};
