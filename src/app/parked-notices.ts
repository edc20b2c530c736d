import type { Logger } from 'pino';
import type { UnreadableTenant } from '../ledger/fold';
import type { Blocked, ParkedReport } from '../projecting/parking';

/**
 * Logs which tenants are parked or cannot be decided on: one warning for each event, however many projections it parks
 * its tenant in, and a line when they are free again.
 */
export interface ParkedNotices {
  /** Who is parked in a projection now. */
  parked(report: ParkedReport): void;
  /** Begins to look at the tenants whose own streams cannot be read. */
  watch(unreadable: () => readonly UnreadableTenant[]): void;
  close(): void;
}

/** A bad event parks its tenant in several projections, one after the other: that is one line. */
const SETTLE_MS = 1_000;

/** More than this are summed up. */
const MAX_LINES = 10;

const DECISIONS = 'decisions';
const SHOWN_BY = { parked: 'tenant-ledger projections parked', unreadable: 'tenant-ledger status' };

type Log = Pick<Logger, 'info' | 'warn'>;

/** Who is blocked at one place, a projection or the decisions, by tenant. */
type BlockedTenants = ReadonlyMap<string, Blocked>;

interface Notice {
  readonly what: Blocked;
  readonly places: Set<string>;
}

/** What has changed since the last lines were logged. */
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

/** A worker that is behind comes to an event late: that it is parked there, too, is no second warning. */
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

/** What was not even logged yet need not be taken back. */
const noteFreed = ({ blocked, freed }: News, place: string, what: Blocked): void => {
  const notice = blocked.get(keyOf(what));
  if (notice?.places.delete(place) !== true) {
    freed.set(what.tenant_id, (freed.get(what.tenant_id) ?? new Set()).add(place));
    return;
  }
  if (notice.places.size === 0) blocked.delete(keyOf(what));
};

/** Where a list was cut, those after its last tenant are taken to be as they were. */
const blockedNow = (before: BlockedTenants, list: readonly Blocked[], isCut: boolean): BlockedTenants => {
  const now = new Map(list.map((one) => [one.tenant_id, one]));
  const last = list.at(-1)?.tenant_id ?? '';
  if (isCut) for (const [tenantId, one] of before) if (tenantId > last) now.set(tenantId, one);
  return now;
};

export const parkedNotices = (logger: Log): ParkedNotices => {
  const known = new Map<string, BlockedTenants>();
  const news: News = { blocked: new Map(), freed: new Map() };
  let logging: NodeJS.Timeout | undefined;
  let watching: NodeJS.Timeout | undefined;

  /** There is a place where it was seen before the news. */
  const isAnnounced = ({ what, places }: Notice): boolean =>
    [...known].some(([place, tenants]) => {
      const one = tenants.get(what.tenant_id);
      return place !== DECISIONS && !places.has(place) && one !== undefined && keyOf(one) === keyOf(what);
    });

  const logNow = (): void => {
    logging = undefined;
    logNews(logger, news, isAnnounced);
    news.blocked.clear();
    news.freed.clear();
  };

  const look = (place: string, list: readonly Blocked[], isCut = false): void => {
    const before = known.get(place) ?? new Map<string, Blocked>();
    const now = blockedNow(before, list, isCut);
    known.set(place, now);
    for (const [tenantId, one] of before) if (!now.has(tenantId)) noteFreed(news, place, one);
    for (const [tenantId, one] of now) {
      const was = before.get(tenantId);
      if (was === undefined || keyOf(was) !== keyOf(one)) noteBlocked(news, place, one);
    }
    if (news.blocked.size + news.freed.size > 0) logging ??= setTimeout(logNow, SETTLE_MS).unref();
  };

  return {
    parked: ({ projection, parked, isCut }) => look(projection, parked, isCut),
    watch: (unreadable) => {
      watching = setInterval(() => look(DECISIONS, unreadable().map(blockedBy)), SETTLE_MS).unref();
    },
    close: () => {
      clearInterval(watching);
      clearTimeout(logging);
      logNow();
    },
  };
};
