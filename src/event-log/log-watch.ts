import { randomUUID } from 'node:crypto';
import { monotonicMs, pause } from '../async/clock';
import { codeOf, messageOf, moreOf, type Fault } from '../fault';
import { singleFlight } from '../async/single-flight';
import { logFault, type Continuity, type EventLog, type Expected, type Head } from './event-log';

/**
 * Watches whether the log is reachable and still contains what this process has seen in it. A log that was rolled back
 * (restored from an older backup, or its file replaced) would make read models silently wrong.
 */
export interface LogWatch {
  /** The watched log. It also checks the results of appends, and refuses appends while it looks rolled back. */
  readonly log: EventLog;
  /** Why the log looks as if it was rolled back; undefined while it is whole. */
  setBack(): Fault | undefined;
  /** An event is missing although the log continues after it. */
  missing(): Fault | undefined;
  /** Whether it was out of reach when last checked. */
  isAway(): boolean;
  /** Throws `log_set_back` once the log is certain to be rolled back. */
  assertLogIntact(): void;
  /** Throws if appends fail or would fail: a server that cannot write must not look healthy. */
  mustBeWritable(): Promise<void>;
  /** Checks now. Never rejects. */
  check(): Promise<void>;
  /** Checks regularly until stopped. */
  start(): void;
  stop(): void;
}

export interface LogWatchDependencies {
  readonly log: EventLog;
  /** The last event that any live read model has applied. */
  readonly checkpoint: () => Promise<Head | undefined>;
  /** Called when the state changes: with an error for the worse, without one for the better. */
  readonly report: (what: string, error?: Fault) => void;
  /** Called once the log is certain to be rolled back. Whatever this process has in memory is invalid: it must end. */
  readonly onLost: (reason: Fault) => void;
  /** Throws if an append would fail. Not needed for an event store, which shows that when it is read. */
  readonly probe?: () => Promise<void>;
  readonly everyMs?: number;
}

const EVERY_MS = 2_000;
/** While the log is out of reach or in doubt. */
const SOON_MS = 500;
/** A new leader of a cluster may show an older state for a moment. After this, the log was rolled back. */
const DOUBT_MS = 5_000;

/** A failed append counts for this long, unless one succeeds. */
const FAILED_MS = 5_000;

const UNAVAILABLE: ReadonlySet<string | undefined> = new Set(['log_unavailable', 'outcome_unknown']);

const REBUILD = '`tenant-ledger projections rebuild`';

const howOf = (found: 'set_back' | 'replaced', known: Head | undefined): string =>
  found === 'replaced' || known === undefined
    ? 'another log, or none, is in the place of the one that was opened'
    : `it ends before the event ${known.eventId} at ${known.position}, or has another one there, as after a restore from an older backup`;

/** Undefined if nothing is wrong. */
export const whatIsWrong = (found: Continuity, known: Head | undefined): string | undefined => {
  switch (found) {
    case 'whole':
      return undefined;
    case 'missing':
      return `The event ${known?.eventId} at ${known?.position} is missing from the event log, which continues after it: it was scavenged, or the log was rolled back and has grown since.`;
    case 'set_back':
    case 'replaced':
      return `The event log was rolled back: ${howOf(found, known)}.`;
  }
};

/** The answer of `continuity` that remains when a cluster had time to replace its leader. */
export const lastingContinuity = async (
  log: Pick<EventLog, 'continuity'>,
  known: Head,
): Promise<Continuity> => {
  const end = monotonicMs() + DOUBT_MS;
  for (;;) {
    const found = await log.continuity(known);
    if (found !== 'set_back' || monotonicMs() >= end) return found;
    await pause(SOON_MS);
  }
};

/** Why a process ends, or does not start. */
export const logSetBack = (what: string): Fault =>
  logFault(
    'log_set_back',
    `${what} Put the right log back or, to keep this one, run ${REBUILD}; then start the service again.`,
  );

const shortened = (stream: string, actual: number, expected: Expected): Fault =>
  logSetBack(
    `The event log was rolled back: stream ${stream} ends at revision ${actual} but had reached revision ${expected}.`,
  );

const later = (a: Head | undefined, b: Head | undefined): Head | undefined =>
  (a?.position ?? '') > (b?.position ?? '') ? a : b;

const secondsSince = (ms: number): string => ((monotonicMs() - ms) / 1_000).toFixed(1);

/** Streams only grow, so one that is shorter than expected was rolled back. */
const actualIfShorter = (error: unknown, expected: Expected): number | undefined => {
  if (codeOf(error) !== 'stream_changed' || expected === 'no_stream') return undefined;
  const actual = Number(moreOf(error)['actual']);
  return actual < expected ? actual : undefined;
};

/** Reports once when the log goes out of reach, and once when it is back. */
const reachOf = (report: LogWatchDependencies['report']) => {
  let awaySince: number | undefined;
  return {
    isAway: () => awaySince !== undefined,
    away: (error: unknown): void => {
      if (awaySince === undefined)
        report('The event log is out of reach; retrying until it is back.', error as Fault);
      awaySince ??= monotonicMs();
    },
    back: (): void => {
      if (awaySince === undefined) return;
      report(`The event log is back after ${secondsSince(awaySince)} s.`);
      awaySince = undefined;
    },
  };
};

/** Keeps track of whether the log is whole. */
const wholenessOf = ({ report, onLost }: Pick<LogWatchDependencies, 'report' | 'onLost'>) => {
  let broken: { readonly fault: Fault; readonly since: number } | undefined;
  let isLost = false;
  let missing: Fault | undefined;

  const suspectRollback = (what: string): void => {
    if (broken === undefined) {
      broken = { fault: logSetBack(what), since: monotonicMs() };
      report(`${what} This is checked again for ${DOUBT_MS / 1_000} s.`, broken.fault);
    } else if (!isLost && monotonicMs() - broken.since > DOUBT_MS) {
      isLost = true;
      onLost(broken.fault);
    }
  };
  const reportMissing = (what: string): void => {
    if (missing !== undefined) return;
    missing = logFault(
      'log_set_back',
      `${what} Rebuild the read models with ${REBUILD} and restart this service.`,
    );
    report(missing.message, missing);
  };

  return {
    setBack: () => broken?.fault,
    missing: () => missing,
    isLost: () => isLost,
    assertLogIntact: (): void => {
      if (isLost && broken !== undefined) throw broken.fault;
    },
    mustLookWhole: (): void => {
      if (broken !== undefined) throw broken.fault;
    },
    /** Once in doubt, only finding the known event ends the doubt: a log that was rolled back may grow past its position. */
    judge: (found: Continuity, known: Head | undefined): void => {
      const what = whatIsWrong(found, known);
      if (what !== undefined && found === 'missing' && broken === undefined) reportMissing(what);
      else if (what !== undefined) suspectRollback(what);
      else if (broken !== undefined && !isLost) {
        report(
          `The event log appeared to be rolled back for ${secondsSince(broken.since)} s; it is complete again.`,
        );
        broken = undefined;
      }
    },
  };
};

/** Keeps track of whether appends succeed. */
const writesOf = (probe: () => Promise<void>) => {
  let failure: { readonly at: number; readonly message: string } | undefined;
  return {
    written: (): void => void (failure = undefined),
    failed: (error: unknown): void => {
      const isUnavailable = UNAVAILABLE.has(codeOf(error));
      failure = isUnavailable ? { at: monotonicMs(), message: messageOf(error) } : undefined;
    },
    mustBeWritable: async (): Promise<void> => {
      if (failure !== undefined && monotonicMs() - failure.at < FAILED_MS)
        throw logFault('log_unavailable', `Writes are failing. ${failure.message}`);
      await probe();
    },
  };
};

/** Asks the log for the last event known to be in it, one check at a time. */
const continuityChecks = (
  { log, checkpoint, report }: LogWatchDependencies,
  { judge, isLost, mustLookWhole }: ReturnType<typeof wholenessOf>,
  ending: AbortSignal,
) => {
  const { isAway, away, back } = reachOf(report);
  let known: Head | undefined;

  /** Determines the known event before asking for it, so that it was in the log by then. */
  const { fresh: check } = singleFlight(async () => {
    if (isLost()) return;
    // Failing read models say nothing about the log.
    known = later(await checkpoint().catch(() => undefined), known);
    try {
      const found = await log.continuity(known);
      back();
      judge(found, known);
    } catch (error) {
      if (!ending.aborted) away(error);
    }
  });

  return {
    isAway,
    check,
    checkIf: async (isDoubtful: boolean): Promise<void> => {
      if (!isDoubtful) return;
      await check();
      mustLookWhole();
    },
    known: () => known?.position ?? '',
    learn: (head: Head): void => void (known = later(head, known)),
  };
};

export const logWatch = (dependencies: LogWatchDependencies): LogWatch => {
  const { log, probe = async () => undefined, everyMs = EVERY_MS } = dependencies;
  const ending = new AbortController();
  const whole = wholenessOf(dependencies);
  const { written, failed, mustBeWritable } = writesOf(probe);
  const { check, checkIf, isAway, known, learn } = continuityChecks(dependencies, whole, ending.signal);
  const { setBack, missing, assertLogIntact, mustLookWhole, isLost } = whole;

  const append: EventLog['append'] = async (stream, events, expected, withinMs) => {
    mustLookWhole();
    const before = known();
    const appended = await log.append(stream, events, expected, withinMs).catch(async (error: unknown) => {
      failed(error);
      const actual = actualIfShorter(error, expected);
      await checkIf(actual !== undefined || codeOf(error) === 'log_set_back');
      throw actual === undefined ? error : shortened(stream, actual, expected);
    });
    written();
    // A new event comes after all known ones. If not, this was a repeated append, or the log was rolled back.
    await checkIf(appended.position <= before);
    learn({ position: appended.position, eventId: events.at(-1)?.id.toLowerCase() ?? '' });
    return appended;
  };

  const watch = async (): Promise<void> => {
    while (!ending.signal.aborted && !isLost()) {
      await check();
      const needsRecheck = isAway() || setBack() !== undefined;
      await pause(needsRecheck ? Math.min(SOON_MS, everyMs) : everyMs, ending.signal);
    }
  };

  return {
    log: { ...log, append },
    setBack,
    missing,
    isAway,
    assertLogIntact,
    mustBeWritable: async () => {
      mustLookWhole();
      await mustBeWritable();
    },
    check,
    start: () => void watch(),
    stop: () => ending.abort(),
  };
};

/** No stream is this long, so an append there is refused without a trace, but only if the log is writable. */
const BEYOND = Number.MAX_SAFE_INTEGER - 1;
const PROBE_MS = 700;

/** Takes the log's write lock briefly, without writing. */
export const probeWriteLock = async (log: EventLog, stream: string): Promise<void> => {
  const event = { id: randomUUID(), type: 'Probe', data: {}, metadata: {} };
  await log.append(stream, [event], BEYOND, PROBE_MS).catch((error: unknown) => {
    if (codeOf(error) === 'stream_changed') return;
    throw logFault(
      'log_unavailable',
      `The event log cannot be written to: another process, possibly a suspended one, holds its lock. ${messageOf(error)}`,
    );
  });
};
