import type { KeyDay, RequestWithKey } from './key-uses';

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
