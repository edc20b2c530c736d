import {
  ADDRESS_NOT_RECORDED,
  COUNTED_ADDRESSES,
  NAMED_ADDRESSES,
  type AccessEvent,
  type AccessFault,
} from '../domain/access';
import { beforeDeadline, monotonicMs } from '../async/clock';
import { encode } from '../event-log/codec';
import type { NewEvent } from '../event-log/event-log';
import { codeOf } from '../fault';
import { groupedBy } from '../grouping';
import { pendingTallies } from '../key-uses/pending-tallies';

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
  /** Whether events name client addresses. They are counted in any case. */
  readonly recordsClients: boolean;
  readonly everyMs?: number;
  readonly maxKeys?: number;
  readonly closeMs?: number;
}

const EVERY_MS = 60_000;

/** How long shutdown waits for a log that does not respond. */
export const CLOSE_MS = 3_000;

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
  firstAt: string;
  lastAt: string;
  count: number;
}

const tallyOf = ({ fault, permissions, address, at, ...key }: RefusedAccess): Tally => ({
  ...key,
  faults: new Set([fault]),
  permissions: new Set(permissions),
  addresses: new Set([address]),
  firstAt: at,
  lastAt: at,
  count: 1,
});

/** Adds what was counted about the same key. Requests need not be refused in the order in which they arrived. */
const add = (tally: Tally, more: Tally): void => {
  for (const fault of more.faults) tally.faults.add(fault);
  for (const permission of more.permissions) tally.permissions.add(permission);
  for (const address of more.addresses)
    if (tally.addresses.size < COUNTED_ADDRESSES) tally.addresses.add(address);
  if (more.firstAt < tally.firstAt) tally.firstAt = more.firstAt;
  if (more.lastAt > tally.lastAt) tally.lastAt = more.lastAt;
  tally.count += more.count;
};

const eventOf = (tally: Tally, recordsClients: boolean): NewEvent => {
  const { applicationId, keyId, firstAt, lastAt } = tally;
  const data: AccessEvent['data'] = {
    applicationId,
    keyId,
    faults: [...tally.faults],
    ...(tally.permissions.size === 0 ? {} : { permissions: [...tally.permissions] }),
    count: tally.count,
    addressCount: tally.addresses.size,
    addresses: recordsClients ? [...tally.addresses].slice(0, NAMED_ADDRESSES) : [ADDRESS_NOT_RECORDED],
    firstAt,
    lastAt,
  };
  const actor = { type: 'application', id: applicationId } as const;
  return encode({ type: 'AccessRefused', data }, { actor, keyId, at: lastAt });
};

/**
 * Counts the requests refused to known keys, and records them as at most one event per key and minute: however many
 * requests a refused client sends, the log of its tenant stays readable. Best effort: nothing waits for it, and counts
 * not yet written are lost if the process is killed.
 */
export const accessRecord = (dependencies: AccessRecordDependencies) => {
  const { append, warn, recordsClients } = dependencies;
  const { everyMs = EVERY_MS, maxKeys = MAX_KEYS, closeMs = CLOSE_MS } = dependencies;
  const pending = pendingTallies<Tally>(({ keyId }) => keyId, add, maxKeys, MAX_KEYS_PER_TENANT);
  /** How many refusals of further keys there was no room for. */
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosing = false;

  const writeLater = (tally: Tally): void => {
    if (!pending.add(tally)) dropped += tally.count;
    timer ??= setTimeout(() => void flush(), everyMs).unref();
  };

  const writeTenant = async (tenantId: string, tallies: readonly Tally[]): Promise<void> => {
    try {
      await append(
        tenantId,
        tallies.map((tally) => eventOf(tally, recordsClients)),
      );
    } catch (error) {
      warn(`Refused access to tenant ${tenantId} could not be recorded.`, error);
      if (codeOf(error) !== 'log_unavailable' || isClosing) return;
      // They were definitely not written, and come before what was refused in the meantime.
      [...tallies, ...pending.take()].forEach(writeLater);
    }
  };

  const write = async (): Promise<void> => {
    if (dropped > 0)
      warn('Some refused access was not recorded.', new Error(`Too many keys: ${dropped} refusals.`));
    dropped = 0;
    for (const [id, ofTenant] of groupedBy(pending.take(), ({ tenantId }) => tenantId))
      await writeTenant(id, ofTenant);
  };

  /** Writes sequentially, so that two events about a key are always at least a full period apart. */
  const flush = (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    return (writing = writing.then(write));
  };

  return {
    /** Never throws or blocks. */
    refused: (refusal: RefusedAccess): void => writeLater(tallyOf(refusal)),
    /** Writes what is pending. */
    close: async (): Promise<void> => {
      isClosing = true;
      const late = () => new Error(`It took longer than ${closeMs} ms.`);
      await beforeDeadline(flush(), monotonicMs() + closeMs, late).catch((error: unknown) =>
        warn('The last refused access could not be recorded.', error),
      );
    },
  };
};

export type AccessRecord = ReturnType<typeof accessRecord>;
