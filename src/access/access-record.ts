import { COUNTED_ADDRESSES, NAMED_ADDRESSES, type AccessEvent, type AccessFault } from '../domain/access';
import { beforeDeadline, monotonicMs } from '../async/clock';
import { inBackground } from '../async/context';
import { encode } from '../event-log/codec';
import type { NewEvent } from '../event-log/event-log';
import { codeOf } from '../fault';
import { groupedBy } from '../grouping';

/**
 * Counts the requests refused to known keys, and records them as at most one event per key and minute: however many
 * requests a refused client sends, the log of its tenant stays readable. Best effort: nothing waits for it, and counts
 * not yet written are lost if the process is killed.
 */
export interface AccessRecord {
  /** Never throws or blocks. */
  refused(refusal: RefusedAccess): void;
  /** Writes what is pending. */
  close(): Promise<void>;
}

export interface RefusedAccess {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyId: string;
  readonly fault: AccessFault;
  /** The missing ones. */
  readonly permissions?: readonly string[];
  readonly address: string;
  /** ISO 8601. */
  readonly at: string;
}

export interface AccessRecordDependencies {
  /** Appends to the end of a tenant's activity stream. */
  readonly append: (tenantId: string, events: readonly NewEvent[]) => Promise<unknown>;
  readonly warn: (what: string, error: unknown) => void;
  readonly everyMs?: number;
  readonly maxKeys?: number;
  readonly closeMs?: number;
}

const EVERY_MS = 60_000;

/** How long shutdown waits for a log that does not respond. */
const CLOSE_MS = 3_000;

/** Until the next write, refusals of further keys are only counted in total: a flood must not cost memory. */
const MAX_KEYS = 1_000;

/** A single tenant must not crowd out the others. */
const MAX_KEYS_PER_TENANT = 100;

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

const tallyOf = ({ tenantId, applicationId, keyId, at }: RefusedAccess): Tally => ({
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

const count = (tally: Tally, { fault, permissions = [], address, at }: RefusedAccess): void => {
  tally.count += 1;
  tally.lastAt = at;
  tally.faults.add(fault);
  for (const permission of permissions) tally.permissions.add(permission);
  if (tally.addresses.size < COUNTED_ADDRESSES) tally.addresses.add(address);
};

const merged = (older: Tally, newer: Tally): Tally => ({
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

/** The refusals since the last write. */
interface Refusals {
  tallies: Map<string, Tally>;
  /** The number of refusals of keys that there was no room for. */
  dropped: number;
}

const hasRoom = ({ tallies }: Refusals, tenantId: string, maxKeys: number): boolean => {
  if (tallies.size >= maxKeys) return false;
  let ofTenant = 0;
  for (const tally of tallies.values()) if (tally.tenantId === tenantId) ofTenant += 1;
  return ofTenant < MAX_KEYS_PER_TENANT;
};

const add = (refusals: Refusals, refusal: RefusedAccess, maxKeys: number): void => {
  const known = refusals.tallies.get(refusal.keyId);
  if (known === undefined && !hasRoom(refusals, refusal.tenantId, maxKeys)) {
    refusals.dropped += 1;
    return;
  }
  const tally = known ?? tallyOf(refusal);
  refusals.tallies.set(refusal.keyId, tally);
  count(tally, refusal);
};

/** Keeps a tally that was definitely not written for the next write. */
const putBack = (refusals: Refusals, tally: Tally, maxKeys: number): void => {
  const { tallies } = refusals;
  const newer = tallies.get(tally.keyId);
  if (newer === undefined && tallies.size >= maxKeys) refusals.dropped += tally.count;
  else tallies.set(tally.keyId, newer === undefined ? tally : merged(tally, newer));
};

export const accessRecord = ({
  append,
  warn,
  everyMs = EVERY_MS,
  maxKeys = MAX_KEYS,
  closeMs = CLOSE_MS,
}: AccessRecordDependencies): AccessRecord => {
  const refusals: Refusals = { tallies: new Map(), dropped: 0 };
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosing = false;

  const writeLater = (): void => {
    timer ??= inBackground(() => setTimeout(() => void flush(), everyMs).unref());
  };

  const writeTenant = async (tenantId: string, tallies: readonly Tally[]): Promise<void> => {
    try {
      await append(tenantId, tallies.map(eventOf));
    } catch (error) {
      if (codeOf(error) === 'upgrade_unfinished') return;
      warn(`Refused access to tenant ${tenantId} could not be recorded.`, error);
      if (codeOf(error) !== 'log_unavailable' || isClosing) return;
      for (const tally of tallies) putBack(refusals, tally, maxKeys);
      writeLater();
    }
  };

  const write = async (): Promise<void> => {
    const { tallies, dropped } = refusals;
    Object.assign(refusals, { tallies: new Map(), dropped: 0 });
    if (dropped > 0)
      warn('Some refused access was not recorded.', new Error(`Too many keys: ${dropped} refusals.`));
    const byTenant = groupedBy(tallies.values(), ({ tenantId }) => tenantId);
    for (const [tenantId, ofTenant] of byTenant) await writeTenant(tenantId, ofTenant);
  };

  /** Writes sequentially, so that two events about a key are always at least a full period apart. */
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.then(write);
    return writing;
  };

  return {
    refused: (refusal) => {
      add(refusals, refusal, maxKeys);
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
