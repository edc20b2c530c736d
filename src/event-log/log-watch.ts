import { monotonicMs, pause } from '../async/clock';
import { codeOf, fault, isAway, messageOf, moreOf, type Fault } from '../fault';
import { TIMES } from '../times';
import { firstOf, type Continuity, type EventLog, type Expected, type Head } from './event-log';

/**
 * Notices that the log was rolled back (restored from an older backup, or its file replaced), which would make read
 * models silently wrong: at the start and before a new subscription delivers (`mustStillHold`), and by appends
 * (`logWatch`).
 */

/** Whether it is so at last. A new leader of a cluster may show an older state for a moment. */
const isSoAtLast = async (isSo: () => Promise<boolean>, doubtMs: number, abort?: AbortSignal) => {
  const end = monotonicMs() + doubtMs;
  for (;;) {
    const now = await isSo();
    if (now || monotonicMs() >= end || abort?.aborted === true) return now;
    await pause(Math.min(TIMES.retryMs, doubtMs), abort);
  }
};

const whatIsWrong = (found: Continuity, known: Head | undefined): string => {
  if (found === 'missing')
    return `The event ${known?.eventId} at ${known?.position} is missing from the event log, which continues after it: it was scavenged, or the log was rolled back and has grown since.`;
  return found === 'replaced' || known === undefined
    ? 'The event log was rolled back: another log, or none, is in the place of the one that was opened.'
    : `The event log was rolled back: it ends before the event ${known.eventId} at ${known.position}, or has another one there, as after a restore from an older backup.`;
};

/** Why a process ends, or does not start. */
const logSetBack = (what: string): Fault =>
  fault(
    'log_set_back',
    `${what} Put the right log back or, to keep this one, run \`tenant-ledger projections rebuild\`; then start the service again.`,
  );

/** Throws `log_set_back` if the log certainly no longer holds an event that was in it. */
export const mustStillHold = async (
  log: Pick<EventLog, 'continuity'>,
  known: Head | undefined,
  doubtMs = TIMES.logDoubtMs,
): Promise<void> => {
  let found: Continuity = 'whole';
  const isWhole = async () => (found = await log.continuity(known)) === 'whole';
  if (!(await isSoAtLast(isWhole, doubtMs))) throw logSetBack(whatIsWrong(found, known));
};

export interface LogWatchDependencies {
  readonly log: EventLog;
  /** Called when the log begins to look rolled back, and without an error when it no longer does. */
  readonly report: (what: string, error?: Fault) => void;
  /** Called once, when the log is certain to be rolled back. What this process has in memory is invalid: it must end. */
  readonly onLost: (reason: Fault) => void;
  readonly times?: Pick<typeof TIMES, 'logDoubtMs' | 'appendFailedMs'>;
}

/** Settles doubts about the log one at a time, in the background. */
const doubts = ({ report, onLost, times = TIMES }: LogWatchDependencies) => {
  const ending = new AbortController();
  let doubted: Fault | undefined;
  let isLost = false;

  const lose = (reason: Fault): void => {
    if (isLost) return;
    doubted = reason;
    isLost = true;
    onLost(reason);
  };
  const settle = async (reason: Fault, isWhole: () => Promise<boolean>): Promise<void> => {
    const answer = await isSoAtLast(isWhole, times.logDoubtMs, ending.signal).catch(
      (error: unknown) => error,
    );
    if (ending.signal.aborted || isLost) return;
    if (isAway(answer)) {
      await pause(TIMES.retryMs, ending.signal);
      return settle(reason, isWhole);
    }
    if (answer !== true) return lose(reason);
    doubted = undefined;
    report('The event log is complete again.');
  };

  return {
    doubted: () => doubted,
    mustNotBeDoubted: (): void => {
      if (doubted !== undefined) throw doubted;
    },
    lose,
    stop: () => ending.abort(),
    /** Returns the reason, for whoever must be refused. */
    doubt: (what: string, isWhole: () => Promise<boolean>): Fault => {
      if (doubted !== undefined) return doubted;
      doubted = logSetBack(what);
      report(`${what} The process ends if this lasts ${times.logDoubtMs / 1_000} s.`, doubted);
      void settle(doubted, isWhole);
      return doubted;
    },
  };
};

/** Streams only grow, so one that is shorter than expected was rolled back. */
const isShorter = (error: unknown, expected: Expected): expected is number =>
  codeOf(error) === 'stream_changed' &&
  expected !== 'no_stream' &&
  Number(moreOf(error)['actual']) < expected;

export const logWatch = (dependencies: LogWatchDependencies) => {
  const { log, times = TIMES } = dependencies;
  const { doubted, mustNotBeDoubted, doubt, lose, stop } = doubts(dependencies);
  let known: Head | undefined;
  let failure: { readonly at: number; readonly message: string } | undefined;

  /** An event that is in the log: whatever is appended later comes after it. */
  const saw = (event: Head): void => {
    if (event.position > (known?.position ?? '')) known = event;
  };
  const mustHoldKnown = async (): Promise<void> => {
    const event = known;
    const found = await log.continuity(event).catch((error: unknown) => {
      throw fault('outcome_unknown', `The append could not be confirmed. ${messageOf(error)}`);
    });
    if (found !== 'whole')
      throw doubt(whatIsWrong(found, event), async () => (await log.continuity(event)) === 'whole');
  };
  const judge = async (error: unknown, stream: string, expected: Expected): Promise<never> => {
    failure = isAway(error) ? { at: monotonicMs(), message: messageOf(error) } : undefined;
    if (codeOf(error) === 'log_set_back') await mustHoldKnown();
    if (!isShorter(error, expected)) throw error;
    throw doubt(
      `The event log was rolled back: stream ${stream} ends at revision ${String(moreOf(error)['actual'])} but had reached revision ${expected}.`,
      async () => (await firstOf(log.readStream(stream, expected - 1))) !== undefined,
    );
  };

  const append: EventLog['append'] = async (stream, events, expected, withinMs) => {
    mustNotBeDoubted();
    const before = known?.position ?? '';
    const appended = await log
      .append(stream, events, expected, withinMs)
      .catch((error: unknown) => judge(error, stream, expected));
    failure = undefined;
    // A new event comes after all known ones. If not, this was a repeated append, or the log was rolled back.
    if (appended.position <= before) await mustHoldKnown();
    saw({ position: appended.position, eventId: events.at(-1)?.id.toLowerCase() ?? '' });
    return appended;
  };

  const watched: EventLog = { ...log, append };
  return {
    /** It refuses appends from the moment it looks rolled back. */
    log: watched,
    saw,
    /** Tells that the log is certain to be rolled back. */
    lose,
    /** Whether the last append failed because the log was out of reach or looked rolled back. */
    isAway: () => failure !== undefined || doubted() !== undefined,
    /** Throws if the log looks rolled back, or if the last append failed a moment ago. */
    mustBeWritable: (): void => {
      mustNotBeDoubted();
      if (failure !== undefined && monotonicMs() - failure.at < times.appendFailedMs)
        throw fault('log_unavailable', `Writes are failing. ${failure.message}`);
    },
    stop,
  };
};

export type LogWatch = ReturnType<typeof logWatch>;
