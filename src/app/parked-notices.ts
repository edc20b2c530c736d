import type { Logger } from 'pino';
import type { Fault } from '../fault';
import type { Blocked, ParkedReport } from '../projecting/parking';

/** Says in the log which tenants are parked or cannot be decided on, and which are so no more: once for each event. */
export interface ParkedNotices {
  /** Who is parked in a projection now. */
  parked(report: ParkedReport): void;
  /** Begins to look at the tenants whose own streams cannot be read. */
  watch(unreadable: () => readonly Fault[]): void;
  close(): void;
}

/** A bad event parks its tenant in several projections, one after the other: that is said in one line. */
const SETTLE_MS = 1_000;

/** More than this are summed up. */
const MOST_LINES = 10;

const DECISIONS = 'decisions';
const SHOWN_BY = { parked: 'tenant-ledger projections parked', unreadable: 'tenant-ledger status' };

interface Notice extends Blocked {
  readonly places: Set<string>;
}

const keyOf = ({ tenant_id, event_id, reason }: Blocked): string => `${tenant_id} ${event_id} ${reason}`;

const blockedBy = ({ more }: Fault): Blocked => ({
  tenant_id: String(more['tenantId']),
  event_id: typeof more['eventId'] === 'string' ? more['eventId'] : '-',
  reason: String(more['reason']),
});

export const parkedNotices = (logger: Pick<Logger, 'info' | 'warn'>): ParkedNotices => {
  /** What was last seen at each place, a projection or the decisions, by tenant. */
  const known = new Map<string, ReadonlyMap<string, Blocked>>();
  const blocked = new Map<string, Notice>();
  const freed = new Map<string, Set<string>>();
  let flushing: NodeJS.Timeout | undefined;
  let watching: NodeJS.Timeout | undefined;

  const sayBlocked = ({ places, ...what }: Notice): void => {
    const projections = [...places].filter((place) => place !== DECISIONS);
    if (projections.length > 0)
      logger.warn(
        { ...what, projections },
        `A tenant is parked: its read models wait at this event. ${SHOWN_BY.parked} shows it.`,
      );
    if (places.has(DECISIONS))
      logger.warn(
        what,
        `Nothing can be decided about a tenant: its history cannot be read. ${SHOWN_BY.unreadable} shows it.`,
      );
  };

  const sayFreed = (tenant_id: string, places: ReadonlySet<string>): void => {
    const projections = [...places].filter((place) => place !== DECISIONS);
    if (projections.length > 0) logger.info({ tenant_id, projections }, 'A tenant is parked no more.');
    if (places.has(DECISIONS)) logger.info({ tenant_id }, 'A tenant can be decided about again.');
  };

  const sayAll = (): void => {
    if (blocked.size > MOST_LINES) {
      const tenants = new Set(Array.from(blocked.values(), ({ tenant_id }) => tenant_id)).size;
      const places = [...new Set(Array.from(blocked.values(), (notice) => [...notice.places]).flat())];
      logger.warn({ tenants, places }, `Many tenants are parked. ${SHOWN_BY.parked} lists them.`);
    } else for (const notice of blocked.values()) sayBlocked(notice);
    if (freed.size > MOST_LINES) logger.info({ tenants: freed.size }, 'Many tenants are parked no more.');
    else for (const [tenantId, places] of freed) sayFreed(tenantId, places);
  };

  const flush = (): void => {
    flushing = undefined;
    sayAll();
    blocked.clear();
    freed.clear();
  };

  const flushSoon = (): void => {
    flushing ??= setTimeout(flush, SETTLE_MS).unref();
  };

  const nowBlocked = (place: string, one: Blocked): void => {
    const notice = blocked.get(keyOf(one)) ?? { ...one, places: new Set() };
    notice.places.add(place);
    blocked.set(keyOf(one), notice);
    freed.get(one.tenant_id)?.delete(place);
    flushSoon();
  };

  /** What was not even said yet need not be taken back. */
  const nowFreed = (place: string, one: Blocked): void => {
    const notice = blocked.get(keyOf(one));
    if (notice?.places.delete(place) === true) {
      if (notice.places.size === 0) blocked.delete(keyOf(one));
      return;
    }
    freed.set(one.tenant_id, (freed.get(one.tenant_id) ?? new Set()).add(place));
    flushSoon();
  };

  /** Where a list was cut, those after its last tenant are taken to be as they were. */
  const look = (place: string, list: readonly Blocked[], isCut = false): void => {
    const before = known.get(place) ?? new Map<string, Blocked>();
    const now = new Map(list.map((one) => [one.tenant_id, one]));
    const last = isCut ? (list.at(-1)?.tenant_id ?? '') : undefined;
    if (last !== undefined) for (const [tenantId, one] of before) if (tenantId > last) now.set(tenantId, one);
    known.set(place, now);
    for (const [tenantId, one] of before) if (!now.has(tenantId)) nowFreed(place, one);
    for (const [tenantId, one] of now) {
      const was = before.get(tenantId);
      if (was === undefined || keyOf(was) !== keyOf(one)) nowBlocked(place, one);
    }
  };

  return {
    parked: ({ projection, parked, isCut }) => look(projection, parked, isCut),
    watch: (unreadable) => {
      watching = setInterval(() => look(DECISIONS, unreadable().map(blockedBy)), SETTLE_MS).unref();
    },
    close: () => {
      clearInterval(watching);
      clearTimeout(flushing);
      flush();
    },
  };
};
