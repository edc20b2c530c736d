/** How long the service waits for what may never come, and for more of the same. Tests pass other times. */
export const TIMES = {
  /** How long a shutdown waits for requests in progress. */
  shutdownMs: 10_000,
  /** How long reads are served after the event log last answered: keys may have been revoked in the meantime. */
  readsWithoutLogMs: 60_000,
  /** How long a request waits for the rate counters that instances share. */
  sharedCountersMs: 200,
  /** How long what keys did is collected before it is appended. */
  keyUsesMs: 1_000,
  /** How long a log may look rolled back: a new leader of a cluster may show an older state for a moment. */
  logDoubtMs: 5_000,
  /** How long a failed append makes the process unavailable, unless another succeeds. */
  appendFailedMs: 5_000,
};

export type Times = Readonly<typeof TIMES>;
