import type { Logger } from 'pino';
import type { UnreadableTenant } from '../ledger/fold';
import type { Blocked, ParkedReport } from '../projecting/parked-tenants';

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

const PARKED = {
  one: 'A tenant is parked: its read models wait at this event. tenant-ledger status shows it.',
  many: 'Many tenants are parked. tenant-ledger status lists them.',
  oneFreed: 'A tenant is no longer parked.',
  manyFreed: 'Many tenants are no longer parked.',
};

const UNREADABLE: typeof PARKED = {
  one: 'Writes to a tenant are refused: its history cannot be read. tenant-ledger status shows it.',
  many: 'Writes to many tenants are refused: their histories cannot be read. tenant-ledger status lists them.',
  oneFreed: 'The history of a tenant can be read again.',
  manyFreed: 'The histories of many tenants can be read again.',
};

type Log = Pick<Logger, 'info' | 'warn'>;
type Notice = Blocked | UnreadableTenant;

const keyOf = ({ tenant_id, event_id, reason }: Notice): string => `${tenant_id} ${event_id} ${reason}`;

const tenantsOf = (notices: readonly Notice[]): ReadonlySet<string> =>
  new Set(notices.map(({ tenant_id }) => tenant_id));

/** Logs how the blocked tenants differ from those of the last call. */
const announcer = (logger: Log, texts: typeof PARKED) => {
  let keys: ReadonlySet<string> = new Set();
  let tenants: ReadonlySet<string> = new Set();
  return (notices: readonly Notice[]): void => {
    const added = notices.filter((notice) => !keys.has(keyOf(notice)));
    const blocked = tenantsOf(notices);
    const freed = [...tenants].filter((tenantId) => !blocked.has(tenantId));
    keys = new Set(notices.map(keyOf));
    tenants = blocked;
    if (added.length > MAX_LINES) logger.warn({ tenants: tenantsOf(added).size }, texts.many);
    else for (const notice of added) logger.warn(notice, texts.one);
    if (freed.length > MAX_LINES) logger.info({ tenants: freed.length }, texts.manyFreed);
    else for (const tenant_id of freed) logger.info({ tenant_id }, texts.oneFreed);
  };
};

/** One notice per bad event, with the projections that it blocks. */
const noticesOf = (parkedIn: ReadonlyMap<string, readonly Blocked[]>): readonly Notice[] => {
  const notices = new Map<string, Blocked & { readonly projections: string[] }>();
  for (const [projection, parked] of parkedIn)
    for (const blocked of parked) {
      const notice = notices.get(keyOf(blocked)) ?? { ...blocked, projections: [] };
      notice.projections.push(projection);
      notices.set(keyOf(blocked), notice);
    }
  return [...notices.values()];
};

export const parkedNotices = (logger: Log): ParkedNotices => {
  const parkedIn = new Map<string, readonly Blocked[]>();
  const announceParked = announcer(logger, PARKED);
  const announceUnreadable = announcer(logger, UNREADABLE);
  let settling: NodeJS.Timeout | undefined;
  let watching: NodeJS.Timeout | undefined;

  const logNow = (): void => {
    settling = undefined;
    announceParked(noticesOf(parkedIn));
  };

  return {
    parked: ({ projection, parked, isCut }) => {
      const last = parked.at(-1)?.tenant_id ?? '';
      const beyond = isCut ? parkedIn.get(projection)?.filter(({ tenant_id }) => tenant_id > last) : [];
      parkedIn.set(projection, parked.concat(beyond ?? []));
      settling ??= setTimeout(logNow, SETTLE_MS).unref();
    },
    watch: (unreadable) => {
      watching = setInterval(() => announceUnreadable(unreadable()), SETTLE_MS).unref();
    },
    close: () => {
      clearInterval(watching);
      clearTimeout(settling);
      logNow();
    },
  };
};
