import type { Logger } from 'pino';
import type { UnreadableTenant } from '../ledger/fold';
import type { Blocked, ParkedReport } from '../projecting/parking';

/**
 * Logs which tenants are parked or unreadable: one warning per bad event, however many projections it parks its tenant
 * in, and a line when a tenant is no longer blocked.
 */
export interface ParkedNotices {
  /** Takes the tenants that are currently parked in a projection. */
  parked(report: ParkedReport): void;
  /** Starts polling for tenants whose own stream cannot be read. */
  watch(unreadable: () => readonly UnreadableTenant[]): void;
  close(): void;
}

/** A bad event parks its tenant in several projections at slightly different times: they become one line. */
const SETTLE_MS = 1_000;

/** More lines than this are replaced by a summary. */
const MAX_LINES = 10;

const DECISIONS = 'decisions';
const SHOWN_BY = { parked: 'tenant-ledger projections parked', unreadable: 'tenant-ledger status' };

type Log = Pick<Logger, 'info' | 'warn'>;

/** The tenants blocked in one place: a projection, or the decisions. */
type BlockedTenants = ReadonlyMap<string, Blocked>;

interface Notice {
  readonly what: Blocked;
  readonly places: Set<string>;
}

/** The changes not logged yet. */
interface News {
  readonly blocked: Map<string, Notice>;
  readonly freed: Map<string, Set<string>>;
}

const keyOf = ({ tenant_id, event_id, reason }: Blocked): string => `${tenant_id} ${event_id} ${reason}`;

const blockedBy = ({ tenant_id, event_id, reason }: UnreadableTenant): Blocked => ({
  tenant_id,
  event_id: event_id ?? '-',
  reason,
});

const projectionsAmong = (places: ReadonlySet<string>): readonly string[] =>
  [...places].filter((place) => place !== DECISIONS);

/** A worker that lags reaches the event later than the others, which is not worth a second warning. */
const logBlocked = (logger: Log, { what, places }: Notice, isAnnounced: boolean): void => {
  const projections = projectionsAmong(places);
  if (projections.length > 0 && isAnnounced)
    logger.info({ ...what, projections }, 'A parked tenant is parked in more projections.');
  else if (projections.length > 0)
    logger.warn(
      { ...what, projections },
      `A tenant is parked: its read models wait at this event. ${SHOWN_BY.parked} shows it.`,
    );
  if (places.has(DECISIONS))
    logger.warn(
      what,
      `Writes to a tenant are refused: its history cannot be read. ${SHOWN_BY.unreadable} shows it.`,
    );
};

const logFreed = (logger: Log, tenant_id: string, places: ReadonlySet<string>): void => {
  const projections = projectionsAmong(places);
  if (projections.length > 0) logger.info({ tenant_id, projections }, 'A tenant is no longer parked.');
  if (places.has(DECISIONS)) logger.info({ tenant_id }, 'The history of a tenant can be read again.');
};

const logNews = (logger: Log, { blocked, freed }: News, isAnnounced: (notice: Notice) => boolean): void => {
  const notices = [...blocked.values()];
  if (notices.length > MAX_LINES) {
    const tenants = new Set(notices.map(({ what }) => what.tenant_id)).size;
    const places = [...new Set(notices.flatMap((notice) => [...notice.places]))];
    logger.warn({ tenants, places }, `Many tenants are parked. ${SHOWN_BY.parked} lists them.`);
  } else for (const notice of notices) logBlocked(logger, notice, isAnnounced(notice));
  if (freed.size > MAX_LINES) logger.info({ tenants: freed.size }, 'Many tenants are no longer parked.');
  else for (const [tenantId, places] of freed) logFreed(logger, tenantId, places);
};

const noteBlocked = ({ blocked, freed }: News, place: string, what: Blocked): void => {
  const notice = blocked.get(keyOf(what)) ?? { what, places: new Set() };
  notice.places.add(place);
  blocked.set(keyOf(what), notice);
  freed.get(what.tenant_id)?.delete(place);
};

/** Drops the notice if it was not logged yet. */
const noteFreed = ({ blocked, freed }: News, place: string, what: Blocked): void => {
  const notice = blocked.get(keyOf(what));
  if (notice?.places.delete(place) !== true) {
    freed.set(what.tenant_id, (freed.get(what.tenant_id) ?? new Set()).add(place));
    return;
  }
  if (notice.places.size === 0) blocked.delete(keyOf(what));
};

/** If the list was cut, assumes that tenants after its last one are unchanged. */
const blockedNow = (before: BlockedTenants, list: readonly Blocked[], isCut: boolean): BlockedTenants => {
  const now = new Map(list.map((blocked) => [blocked.tenant_id, blocked]));
  const last = list.at(-1)?.tenant_id ?? '';
  if (isCut) for (const [tenantId, blocked] of before) if (tenantId > last) now.set(tenantId, blocked);
  return now;
};

export const parkedNotices = (logger: Log): ParkedNotices => {
  const known = new Map<string, BlockedTenants>();
  const news: News = { blocked: new Map(), freed: new Map() };
  let logging: NodeJS.Timeout | undefined;
  let watching: NodeJS.Timeout | undefined;

  /** Whether it was already logged for another projection. */
  const isAnnounced = ({ what, places }: Notice): boolean =>
    [...known].some(([place, tenants]) => {
      const blocked = tenants.get(what.tenant_id);
      if (blocked === undefined || place === DECISIONS || places.has(place)) return false;
      return keyOf(blocked) === keyOf(what);
    });

  const logNow = (): void => {
    logging = undefined;
    logNews(logger, news, isAnnounced);
    news.blocked.clear();
    news.freed.clear();
  };

  const update = (place: string, list: readonly Blocked[], isCut = false): void => {
    const before = known.get(place) ?? new Map<string, Blocked>();
    const now = blockedNow(before, list, isCut);
    known.set(place, now);
    for (const [tenantId, blocked] of before) if (!now.has(tenantId)) noteFreed(news, place, blocked);
    for (const [tenantId, blocked] of now) {
      const earlier = before.get(tenantId);
      if (earlier === undefined || keyOf(earlier) !== keyOf(blocked)) noteBlocked(news, place, blocked);
    }
    if (news.blocked.size + news.freed.size > 0) logging ??= setTimeout(logNow, SETTLE_MS).unref();
  };

  return {
    parked: ({ projection, parked, isCut }) => update(projection, parked, isCut),
    watch: (unreadable) => {
      watching = setInterval(() => update(DECISIONS, unreadable().map(blockedBy)), SETTLE_MS).unref();
    },
    close: () => {
      clearInterval(watching);
      clearTimeout(logging);
      logNow();
    },
  };
};
