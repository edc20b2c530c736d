/**
 * Every time of the service, in milliseconds. What means the same is one time. Composition passes the table on to what
 * tests speed up; everything else reads it here.
 */
export const TIMES = {
  // Requests
  /** A response is promised within 2 s of a request's arrival; what is left of that is for the network. */
  respondMs: 1_900,
  /** Before a deadline, this much is kept for the answer: nothing is begun any more. */
  answerMs: 50,
  /** Probes and scrapes get a response within a second, even if a store does not respond. */
  probeMs: 800,
  /** A client has this long to send all headers, even on a connection that has not sent anything yet. */
  headersMs: 10_000,
  /** A client has this long to send a whole request. */
  requestMs: 20_000,
  /** A connection without a request is kept open for this long. */
  keepAliveMs: 30_000,
  /** Connections that are late are looked for this often. */
  lateConnectionsMs: 1_000,
  /** A connection without any activity is closed after this time: a client that does not read causes none. */
  silenceMs: 60_000,
  /** A shutdown waits this long for requests in progress. */
  shutdownMs: 10_000,
  /** A session of the portal lasts this long. */
  sessionMs: 8 * 3_600_000,
  /** A request waits this long for the rate counters that instances share. */
  sharedCountersMs: 200,

  // Keys and streams
  /** A key that is accepted for reading, now or for a stream that is open, was valid at most this long ago. */
  keyAgeMs: 500,
  /** Reads are served for this long after the event log last answered: keys may have been revoked in the meantime. */
  readsWithoutLogMs: 60_000,
  /** A stream without events shows that often that it is alive. */
  heartbeatMs: 15_000,
  /** What keys did is collected for this long before it is appended. */
  keyUsesMs: 1_000,
  /** What keys did on a day is appended within this time after it. */
  keyUsesSpreadMs: 1_800_000,

  // Turns
  /** The thread that answers requests works on one thing for at most this long. */
  turnMs: 2,
  /** A lock that another process holds is tried again after this time. */
  busyRetryMs: 5,
  /** Log lines and progress are written together this often. */
  outputMs: 250,

  // Read models
  /** Whoever follows the log leaves a tenant alone for this long after an event: it is just being projected. */
  restMs: 300,
  /** A process that finds another one projecting looks again after this time. */
  othersMs: 100,
  /** A tenant that two processes commit at once is committed alone for this long. */
  contestedMs: 5_000,
  /** Whoever was overtaken tries again within this time, at random. */
  conflictPauseMs: 40,
  /** Events that are newer than the tail of the log are read from the log after this time. */
  tailMs: 20,
  /** Nobody waits longer to see a write, or without a word for a store. */
  tellMs: 2_000,
  /** Whoever waits for the one who projects looks this often whether there is one. */
  projectorLookMs: 250,
  /** Whoever projects or builds shows this often that it is alive. After an append, it expects more for as long. */
  renewMs: 1_000,
  /** Another process takes over this long after the last renewal. */
  leaseMs: 5_000,
  /** A request may read a set for this long after its look at the control state. */
  readWithinMs: 30_000,
  /** A set that was superseded, or that its builder has not renewed, stays for this long: requests may still read it. */
  graceMs: 60_000,
  /** Facts are appended without waiting for the read models if nothing was shown for this long. */
  paceMs: 30_000,

  // Stores
  /** A store that takes longer than this does not answer. */
  noAnswerMs: 1_000,
  /** After a store has failed, it is tried again, or given up, this much later. */
  retryMs: 500,
  /** A start, a stop, a command and whoever opens something wait this long for what may never come. */
  waitMs: 5_000,
  /** Work that no request waits for has this long. */
  backgroundMs: 10_000,
  /** Each of the last things at a stop may take this long. */
  lastMs: 3_000,
  /** It is repeated this often that a store is away. */
  awayMs: 10_000,
  /** The same warning is not repeated for this long: while a store is down, the same thing fails many times a second. */
  sameWarningMs: 60_000,
  /** An append has this long: enough for a slow disk, and little enough for a waiting caller. */
  appendMs: 1_800,
  /** A failed append makes the process unavailable for this long, unless another succeeds. */
  appendFailedMs: 5_000,
  /** A log may look rolled back for this long: a new leader of a cluster may show an older state for a moment. */
  logDoubtMs: 5_000,
  /** Another process's appends to the embedded log are found after this time. */
  followMs: 50,
  /** A read of the event store without any result for this long has failed, as has a connection to MongoDB. */
  silentReadMs: 3_000,
  /** A call to the event store is repeated after this time: an election may be in progress. */
  reconnectMs: 30,
  /** A query of MongoDB that a request waits for has this long. */
  queryMs: 900,
  /** A transaction has this long. */
  transactionMs: 3_000,
  /** Whoever meets a conflict ends the transactions that are older than this: their processes are gone. */
  conflictMs: 5_000,
  /** Whoever keeps others out for a switch, and was not at work for this long, is taken for dead. */
  silentMs: 2_000,
};

export type Times = Readonly<typeof TIMES>;
