import type { EventStoreDBClient } from '@eventstore/db-client';
import { monotonicMs, pause } from '../../async/clock';
import { codeOf } from '../../fault';
import { TIMES } from '../../times';
import type { Batch, Continuity, Head, Position } from '../event-log';
import { mustStillHold } from '../log-watch';
import type { Connection } from './connection';
import { isLagging } from './errors';
import type { Source } from './source';
import type { WholeLog } from './whole-log';

/**
 * Follows the log with a subscription. Neither the server nor the package resumes subscriptions: however one ends, the
 * next continues right after the last event delivered. The server drops a follower that lags, which then catches up the
 * same way.
 */
interface Following {
  readonly connection: Connection;
  readonly log: WholeLog;
  readonly continuity: (known?: Head) => Promise<Continuity>;
  /** How long the log may look rolled back. */
  readonly doubtMs: number | undefined;
  /** Aborted when the log is closed. */
  readonly closing: AbortSignal;
  readonly onError: (what: string, error: unknown) => void;
}

/** A follower's position, and the last event known to be in the log. */
interface Progress {
  after: Position;
  known: Head | undefined;
}

const advance = (progress: Progress, batch: Batch): void => {
  const last = batch.at(-1);
  if (last === undefined) return;
  progress.after = last.position;
  const { id: eventId, position } = last;
  if (position > (progress.known?.position ?? '')) progress.known = { eventId, position };
};

/** Throws if nothing arrives although the log grew: connections and single subscriptions can die silently. */
const batchesFrom = async function* (source: Source, isBehind: () => Promise<boolean>) {
  for (let isInDoubt = false; ;) {
    // After a while without an event the head is checked; if an event is due, it gets a little longer to arrive.
    const batch = await source.next(isInDoubt ? TIMES.noAnswerMs : TIMES.waitMs);
    if (batch === undefined) return;
    if (batch !== 'silent') yield batch;
    else if (isInDoubt) throw new Error('The subscription fell silent while the log grew.');
    isInDoubt = batch === 'silent' && (await isBehind());
  }
};

/** One subscription, until it ends for whatever reason. */
const subscribeOnce = async function* (
  { connection, log, continuity, doubtMs }: Following,
  { after, known }: Readonly<Progress>,
  ending: AbortSignal,
): AsyncGenerator<Batch> {
  const source = log.subscribe(after);
  const stop = (): void => source.stop();
  // A connection that did not answer one call may be dead for this one too, so move to the new one.
  const removeListener = connection.onRenewed(stop);
  ending.addEventListener('abort', stop);
  let reached = after;
  /** Only our own events count. */
  const isBehind = async (): Promise<boolean> => ((await log.head())?.position ?? '') > reached;
  const mustHoldKnown = (): Promise<void> => mustStillHold({ continuity }, known, doubtMs);
  try {
    await mustHoldKnown();
    for await (const batch of batchesFrom(source, isBehind)) {
      const wanted = batch.filter(({ position, stream }) => position > after && log.isOurs(stream));
      if (wanted.length === 0) continue;
      // The server may have been restored from an older backup, and have grown since, just before it was subscribed to.
      if (reached === after) await mustHoldKnown();
      if (ending.aborted) return;
      reached = wanted.at(-1)?.position ?? reached;
      yield wanted;
    }
  } finally {
    ending.removeEventListener('abort', stop);
    removeListener();
    source.stop();
  }
};

export const follow = async function* (dependencies: Following, after: Position, signal?: AbortSignal) {
  const { connection, log, closing, onError } = dependencies;
  const ending = signal === undefined ? closing : AbortSignal.any([closing, signal]);
  const progress: Progress = { after, known: undefined };
  let isReported = false;

  const fail = (client: EventStoreDBClient, error: unknown): void => {
    if (codeOf(error) === 'no_answer') connection.renew(client);
    if (isReported || isLagging(error)) return;
    isReported = true;
    onError('Following the event log failed; retrying.', error);
  };

  for (let waitMs = 0; !ending.aborted;) {
    const client = connection.client();
    const startedAt = monotonicMs();
    /** Whether it delivered anything, or at least lasted. */
    let isUseful = false;
    try {
      progress.known ??= await log.head();
      if (ending.aborted) return;
      for await (const batch of subscribeOnce(dependencies, progress, ending)) {
        isUseful = true;
        isReported = false;
        advance(progress, batch);
        yield batch;
      }
      isUseful ||= monotonicMs() - startedAt > TIMES.noAnswerMs;
    } catch (error) {
      if (ending.aborted) return;
      if (codeOf(error) === 'log_set_back') throw error;
      if (!isUseful) fail(client, error);
    }
    // One that delivered anything or lasted longer than any wait is resumed at once; others with backoff.
    waitMs = isUseful ? 0 : Math.min(TIMES.noAnswerMs, Math.max(TIMES.reconnectMs, 2 * waitMs));
    if (waitMs > 0) await pause(waitMs, ending);
  }
};
