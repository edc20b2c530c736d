import type { KeyUse } from '../domain/key-use';

/** What a key of this tenant was used for on one day, with the address of its latest use where clients are recorded. */
export interface KeyDay extends KeyUse {
  readonly tenantId: string;
  readonly address?: string | undefined;
}

/** One request with a key, or events that a request is being answered with. */
export interface RequestWithKey {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyId: string;
  /** ISO 8601. */
  readonly at: string;
  /** Undefined: it is not recorded. */
  readonly address?: string | undefined;
  readonly what: { readonly operation: string } | 'failed' | { readonly eventsGivenOut: number };
}

/** A day that is still being counted. */
export type Tally = {
  -readonly [M in keyof KeyDay]: M extends 'operations' ? Record<string, number> : KeyDay[M];
};

export const tallyOf = ({ tenantId, applicationId, keyId, at, address, what }: RequestWithKey): Tally => ({
  tenantId,
  applicationId,
  keyId,
  date: at.slice(0, 10),
  operations: what !== 'failed' && 'operation' in what ? { [what.operation]: 1 } : {},
  failed: what === 'failed' ? 1 : 0,
  eventsGivenOut: what !== 'failed' && 'eventsGivenOut' in what ? what.eventsGivenOut : 0,
  firstAt: at,
  lastAt: at,
  ...(address === undefined ? {} : { address }),
});

/** Adds what was counted elsewhere about the same key and day. */
export const add = (tally: Tally, more: KeyDay): void => {
  for (const [operation, count] of Object.entries(more.operations))
    tally.operations[operation] = (tally.operations[operation] ?? 0) + count;
  tally.failed += more.failed;
  tally.eventsGivenOut += more.eventsGivenOut;
  if (more.firstAt < tally.firstAt) tally.firstAt = more.firstAt;
  if (more.lastAt < tally.lastAt) return;
  tally.lastAt = more.lastAt;
  if (more.address !== undefined) tally.address = more.address;
};

/**
 * When each key was last accepted, and what it was used for on the days that the log does not have yet. This is
 * operational data: it is stored outside the log and the read models, and losing it loses at most a day of counts.
 */
export interface KeyUses {
  /** Never throws or blocks. A key is written at most once a minute, unless there are very many. */
  used(request: RequestWithKey): void;
  /**
   * By key id: for these keys, at a cost that grows with their number, or for all keys of the tenant. Keys that were
   * never used are omitted.
   */
  lastUses(tenantId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** What is stored about a key on these days. */
  days(tenantId: string, keyId: string, dates: readonly string[]): Promise<readonly KeyDay[]>;
  /** Of all keys, what is stored about days before this one; in order, from just after the given one. */
  daysBefore(date: string, limit: number, after?: KeyDay): Promise<readonly KeyDay[]>;
  /** Removes what the log has. */
  remove(days: readonly KeyDay[]): Promise<void>;
  /** Writes what is pending. */
  close(): Promise<void>;
}
