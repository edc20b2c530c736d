import type {
  AllStreamResolvedEvent,
  AllStreamSubscription,
  ResolvedEvent,
  StreamingRead,
} from '@eventstore/db-client';
import type { Readable } from 'node:stream';
import { yieldToEventLoop, condition } from '../../async/clock';
import { BATCH_BYTES, BATCH_EVENTS, type Batch, type LoggedEvent } from '../event-log';
import { noAnswer } from './errors';
import { eventOf } from './record';

/** How many events the package may read ahead. */
export const READ_AHEAD = { highWaterMark: 128 };

/** A read or subscription of the package. It may end, fail or fall silent, and must be stopped when no longer needed. */
export interface Source {
  /**
   * The next batch, never empty; undefined at the end; `silent` if there was no sign of life for that long. Rejects if
   * the source failed.
   */
  next(silentMs: number): Promise<Batch | 'silent' | undefined>;
  /** Reports another sign of life. */
  alive(): void;
  /** Ends it locally, with or without an error. */
  stop(error?: Error): void;
}

export type Reading =
  StreamingRead<ResolvedEvent> | StreamingRead<AllStreamResolvedEvent> | AllStreamSubscription;

const takeFrom = (reading: Readable): Batch => {
  const batch: LoggedEvent[] = [];
  let bytes = 0;
  while (batch.length < BATCH_EVENTS && bytes < BATCH_BYTES) {
    const next = reading.read() as ResolvedEvent | null;
    if (next === null) break;
    if (next.event === undefined) continue;
    const event = eventOf(next.event);
    batch.push(event);
    bytes += event.bytes ?? 0;
  }
  return batch;
};

/**
 * Cancels the call and discards what still arrives: left unread, it would keep the call and thus the process alive. Does
 * not wait for the cancellation, which may hang on an unreachable server.
 */
const cancel = (given: Reading, reading: Readable): void => {
  const cancelled = 'unsubscribe' in given ? given.unsubscribe() : given.cancel();
  cancelled.catch(() => undefined);
  reading.removeAllListeners('readable');
  reading.resume();
};

export const sourceOf = (given: Reading): Source => {
  const reading = given as unknown as Readable;
  const changed = condition();
  let signs = 0;
  let isOver = false;
  let isStopped = false;
  let failure: Error | undefined;

  const alive = (): void => {
    signs += 1;
    changed.notify();
  };
  const end = (error?: Error): void => {
    failure ??= error;
    isOver = true;
    alive();
  };
  reading.on('readable', alive);
  reading.on('end', () => end());
  reading.on('close', () => end());
  // Never removed: an error after the end must not crash the process.
  reading.on('error', end);

  return {
    alive,
    next: async (silentMs) => {
      for (;;) {
        const batch = isStopped ? [] : takeFrom(reading);
        if (batch.length > 0) return batch;
        if (failure !== undefined) throw failure;
        if (isOver) return undefined;
        const before = signs;
        await changed.wait({ withinMs: silentMs });
        if (signs === before) return 'silent';
        // Collect what arrives together into one batch.
        await yieldToEventLoop();
      }
    },
    stop: (error) => {
      if (isStopped) return;
      isStopped = true;
      end(error);
      cancel(given, reading);
    },
  };
};

/** All batches of a source. Silence is a failure. Stops the source however the loop ends. */
export const batchesOf = async function* (source: Source, silentMs: number): AsyncGenerator<Batch> {
  try {
    for (;;) {
      const batch = await source.next(silentMs);
      if (batch === undefined) return;
      if (batch === 'silent') throw noAnswer(`Nothing arrived for ${silentMs} ms.`);
      yield batch;
    }
  } finally {
    source.stop();
  }
};
