import { COUNTED_ADDRESSES, NAMED_ADDRESSES, type AccessEvent, type AccessFault } from '../domain/access';
import { beforeDeadline, monotonicMs } from '../clock';
import { encode } from '../event-log/codec';
import type { NewEvent } from '../event-log/event-log';
import { codeOf } from '../fault';
import { groupedBy } from '../grouping';

/**
 * Keeps count of what is refused to known keys, and writes it down as one fact per key and minute at most: however many
 * requests a refused client sends, the log of its tenant stays readable. Best effort: nothing waits for it, and what was
 * not written when the process is killed is lost.
 */
export interface AccessRecord {
  /** Never throws and never waits. */
  refused(one: Refused): void;
  /** Writes what is left. */
  close(): Promise<void>;
}

export interface Refused {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyId: string;
  readonly fault: AccessFault;
  /** The one that was missing. */
  readonly permission?: string;
  readonly address: string;
  /** ISO 8601. */
  readonly at: string;
}

export interface AccessRecordParts {
  /** Appends to the end of a tenant's activity stream. */
  readonly append: (tenantId: string, events: readonly NewEvent[]) => Promise<unknown>;
  readonly warn: (what: string, error: unknown) => void;
  readonly everyMs?: number;
  readonly maxKeys?: number;
  readonly closeMs?: number;
}

const EVERY_MS = 60_000;

/** How long a process that ends waits for a log that does not answer. */
const CLOSE_MS = 3_000;

/** Refusals of more keys than this are only counted until the next write: a flood must not cost memory. */
const MAX_KEYS = 1_000;

/** The most keys of one tenant: it must not crowd out the others. */
const MAX_OF_ONE = 100;

interface Tally {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyId: string;
  readonly faults: Set<AccessFault>;
  readonly permissions: Set<string>;
  readonly addresses: Set<string>;
  readonly firstAt: string;
  lastAt: string;
  count: number;
}

const tallyOf = ({ tenantId, applicationId, keyId, at }: Refused): Tally => ({
  tenantId,
  applicationId,
  keyId,
  faults: new Set(),
  permissions: new Set(),
  addresses: new Set(),
  firstAt: at,
  lastAt: at,
  count: 0,
});

const count = (tally: Tally, { fault, permission, address, at }: Refused): void => {
  tally.count += 1;
  tally.lastAt = at;
  tally.faults.add(fault);
  if (permission !== undefined) tally.permissions.add(permission);
  if (tally.addresses.size < COUNTED_ADDRESSES) tally.addresses.add(address);
};

const together = (older: Tally, newer: Tally): Tally => ({
  ...newer,
  faults: new Set([...older.faults, ...newer.faults]),
  permissions: new Set([...older.permissions, ...newer.permissions]),
  addresses: new Set([...new Set([...older.addresses, ...newer.addresses])].slice(0, COUNTED_ADDRESSES)),
  firstAt: older.firstAt,
  count: older.count + newer.count,
});

const eventOf = (tally: Tally): NewEvent => {
  const { applicationId, keyId, firstAt, lastAt } = tally;
  const data: AccessEvent['data'] = {
    applicationId,
    keyId,
    faults: [...tally.faults],
    ...(tally.permissions.size === 0 ? {} : { permissions: [...tally.permissions] }),
    count: tally.count,
    addressCount: tally.addresses.size,
    addresses: [...tally.addresses].slice(0, NAMED_ADDRESSES),
    firstAt,
    lastAt,
  };
  const actor = { type: 'application', id: applicationId } as const;
  return encode({ type: 'AccessRefused', data }, { actor, keyId, at: lastAt });
};

/** What was refused since the last writing. */
interface Refusals {
  tallies: Map<string, Tally>;
  /** The number of refusals of keys that there was no room for. */
  overlooked: number;
}

const hasRoom = ({ tallies }: Refusals, tenantId: string, maxKeys: number): boolean => {
  if (tallies.size >= maxKeys) return false;
  let own = 0;
  for (const tally of tallies.values()) if (tally.tenantId === tenantId) own += 1;
  return own < MAX_OF_ONE;
};

const add = (refusals: Refusals, one: Refused, maxKeys: number): void => {
  const known = refusals.tallies.get(one.keyId);
  if (known === undefined && !hasRoom(refusals, one.tenantId, maxKeys)) {
    refusals.overlooked += 1;
    return;
  }
  const tally = known ?? tallyOf(one);
  refusals.tallies.set(one.keyId, tally);
  count(tally, one);
};

/** What was certainly not written is kept for the next time. */
const putBack = (refusals: Refusals, tally: Tally, maxKeys: number): void => {
  const { tallies } = refusals;
  const newer = tallies.get(tally.keyId);
  if (newer === undefined && tallies.size >= maxKeys) refusals.overlooked += tally.count;
  else tallies.set(tally.keyId, newer === undefined ? tally : together(tally, newer));
};

export const accessRecord = ({
  append,
  warn,
  everyMs = EVERY_MS,
  maxKeys = MAX_KEYS,
  closeMs = CLOSE_MS,
}: AccessRecordParts): AccessRecord => {
  const refusals: Refusals = { tallies: new Map(), overlooked: 0 };
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosing = false;

  const writeLater = (): void => {
    timer ??= setTimeout(() => void flush(), everyMs).unref();
  };

  const writeTenant = async (tenantId: string, own: readonly Tally[]): Promise<void> => {
    try {
      await append(tenantId, own.map(eventOf));
    } catch (error) {
      if (codeOf(error) === 'upgrade_unfinished') return;
      warn(`Refused access to tenant ${tenantId} could not be recorded.`, error);
      if (codeOf(error) !== 'log_unavailable' || isClosing) return;
      for (const tally of own) putBack(refusals, tally, maxKeys);
      writeLater();
    }
  };

  const write = async (): Promise<void> => {
    const { tallies, overlooked } = refusals;
    Object.assign(refusals, { tallies: new Map(), overlooked: 0 });
    if (overlooked > 0)
      warn('Some refused access was not recorded.', new Error(`Too many keys: ${overlooked} refusals.`));
    const byTenant = groupedBy(tallies.values(), ({ tenantId }) => tenantId);
    for (const [tenantId, own] of byTenant) await writeTenant(tenantId, own);
  };

  /** One after the other, so that two facts about a key are always a whole period apart. */
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.then(write);
    return writing;
  };

  return {
    refused: (one) => {
      add(refusals, one, maxKeys);
      writeLater();
    },
    close: async () => {
      isClosing = true;
      const late = () => new Error(`It took longer than ${closeMs} ms.`);
      await beforeDeadline(flush(), monotonicMs() + closeMs, late).catch((error: unknown) =>
        warn('The last refused access could not be recorded.', error),
      );
    },
  };
};
