import { pause, RETRY_MS } from '../async/clock';
import type { EventLog, LoggedEvent, Position, ReadFrom } from '../event-log/event-log';

/**
 * A batch ends at whichever limit comes first. Batches are this large while there is more to read, since larger commits
 * cost less per document; at the end of the log they contain whatever has arrived.
 */
const BATCH_EVENTS = 4_096;
const BATCH_BYTES = 4_194_304;

/** A follower that gets this many events at once has fallen behind. */
const MANY_EVENTS = 512;

export interface ReaderOptions {
  /** Called when following the log fails. It is retried. */
  readonly onError?: (error: unknown) => void;
  /** The size of a full batch, which may exceed it by a few events. */
  readonly batchEvents?: number;
}

/** Reads the log in batches of the size that runs commit. The empty position is before everything. */
export interface BatchReader {
  /** The events after a position that exist now. Throws if the log cannot be read. */
  read(at: Position): Promise<readonly LoggedEvent[]>;
  /** The same with a read of its own, for a run that is elsewhere in the log. */
  readAlone(at: Position): Promise<readonly LoggedEvent[]>;
  /** Like `read`, but waits for new events at the end of the log, and retries when the log fails. */
  follow(at: Position): Promise<readonly LoggedEvent[]>;
  close(): Promise<void>;
}

const endOf = (events: readonly LoggedEvent[], otherwise: Position): Position =>
  events.at(-1)?.position ?? otherwise;

const iterate = (log: EventLog, at: Position, more: Omit<ReadFrom, 'after'>) =>
  log.readAll({ after: at === '' ? undefined : at, ...more })[Symbol.asyncIterator]();

/** Fills a batch. If it is not full, the iterator has ended. */
const readMany = async (
  batches: AsyncIterator<readonly LoggedEvent[]>,
  batchEvents: number,
): Promise<{ readonly events: readonly LoggedEvent[]; readonly isFull: boolean }> => {
  const events: LoggedEvent[] = [];
  let bytes = 0;
  for (let next = await batches.next(); next.done !== true; next = await batches.next()) {
    for (const event of next.value) {
      events.push(event);
      bytes += event.bytes ?? 0;
    }
    if (events.length >= batchEvents || bytes >= BATCH_BYTES) return { events, isFull: true };
  }
  return { events, isFull: false };
};

interface Reading {
  readonly batches: AsyncIterator<readonly LoggedEvent[]>;
  /** Everything up to here has been read from it. */
  at: Position;
  readonly isFollowing: boolean;
}

/** A read of the log that stays open for as long as callers continue where it stopped. */
const openReading = (log: EventLog, batchEvents: number, ending: AbortSignal) => {
  let reading: Reading | undefined;

  const close = async (): Promise<void> => {
    const { batches } = reading ?? {};
    reading = undefined;
    await batches?.return?.();
  };

  const open = async (at: Position, isFollowing: boolean): Promise<Reading> => {
    if (reading?.at === at && reading.isFollowing === isFollowing) return reading;
    await close();
    const batches = iterate(log, at, { follow: isFollowing, signal: ending });
    return (reading = { batches, at, isFollowing });
  };

  /** If an open read turns out to have ended with its last batch, read again: it cannot see events that came since. */
  const readOn = async (at: Position): Promise<readonly LoggedEvent[]> => {
    const kept = reading;
    const from = await open(at, false);
    const { events, isFull } = await readMany(from.batches, batchEvents);
    from.at = endOf(events, at);
    if (!isFull) reading = undefined;
    return events.length === 0 && from === kept ? readOn(at) : events;
  };

  const follow = async (at: Position): Promise<readonly LoggedEvent[]> => {
    const from = await open(at, true);
    const { value, done } = await from.batches.next();
    const events = done === true ? [] : value;
    from.at = endOf(events, at);
    if (events.length >= MANY_EVENTS || done === true) await close();
    return events;
  };

  return {
    readOn,
    readOrFollow: async (at: Position): Promise<readonly LoggedEvent[]> => {
      if (reading?.isFollowing === true && reading.at === at) return follow(at);
      const events = await readOn(at);
      return events.length > 0 ? events : follow(at);
    },
    close,
  };
};

export const batchReader = (
  log: EventLog,
  ending: AbortSignal,
  { onError = () => undefined, batchEvents = BATCH_EVENTS }: ReaderOptions = {},
): BatchReader => {
  const reading = openReading(log, batchEvents, ending);
  return {
    read: async (at) => {
      try {
        return await reading.readOn(at);
      } catch (error) {
        await reading.close().catch(() => undefined);
        throw error;
      }
    },
    readAlone: async (at) => {
      const batches = iterate(log, at, { signal: ending });
      try {
        return (await readMany(batches, batchEvents)).events;
      } finally {
        await batches.return?.();
      }
    },
    follow: async (at) => {
      while (!ending.aborted) {
        try {
          const events = await reading.readOrFollow(at);
          if (events.length > 0) return events;
        } catch (error) {
          await reading.close().catch(() => undefined);
          onError(error);
        }
        await pause(RETRY_MS, ending);
      }
      return [];
    },
    close: reading.close,
  };
};
