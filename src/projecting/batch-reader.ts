import { pause } from '../clock';
import type { EventLog, LoggedEvent, Position, ReadFrom } from '../event-log/event-log';

/**
 * A batch ends at whichever comes first. While there is more to read, batches are this large, since a commit costs less
 * per document the more documents it has; at the end of the log they hold whatever has arrived.
 */
const BATCH_EVENTS = 4_096;
const BATCH_BYTES = 4_194_304;

/** Where an adapter does not say. */
const USUAL_BYTES = 500;

/** A follower that gets as many events as this at once has fallen behind. */
const MANY_EVENTS = 512;

const RETRY_MS = 500;

export interface Read {
  readonly events: readonly LoggedEvent[];
  /** The batch is full: there is more to read. */
  readonly isFull: boolean;
}

export interface ReaderOptions {
  /** Called when the log cannot be followed; it is tried again. */
  readonly onError?: (error: unknown) => void;
  /** The size of a full batch, which may have a few events more. */
  readonly batchEvents?: number;
}

/** Reads the log in batches as large as runs commit. The empty position is before everything. */
export interface BatchReader {
  readonly batchEvents: number;
  /** What is there after a position. It fails when the log cannot be read. */
  read(at: Position): Promise<Read>;
  /** The same beside all others, for one that is elsewhere in the log. */
  readAlone(at: Position, abort: AbortSignal): Promise<readonly LoggedEvent[]>;
  /** The same, but at the end of the log it waits for what arrives, through failures of the log. */
  follow(at: Position): Promise<Read>;
  /** How many events there are between two positions, perhaps an estimate. */
  distance(low: Position, high: Position): Promise<number>;
  close(): Promise<void>;
}

const afterOf = (at: Position): { readonly after?: Position } => (at === '' ? {} : { after: at });

const endOf = (events: readonly LoggedEvent[], otherwise: Position): Position =>
  events.at(-1)?.position ?? otherwise;

const iterate = (log: EventLog, at: Position, more: Omit<ReadFrom, 'after'>) =>
  log.readAll({ ...afterOf(at), ...more })[Symbol.asyncIterator]();

/** As much as possible at once. If the batch is not full, the iterator has ended. */
const readMany = async (
  batches: AsyncIterator<readonly LoggedEvent[]>,
  batchEvents: number,
): Promise<Read> => {
  const events: LoggedEvent[] = [];
  let bytes = 0;
  for (let some = await batches.next(); some.done !== true; some = await batches.next()) {
    for (const event of some.value) {
      events.push(event);
      bytes += event.bytes ?? USUAL_BYTES;
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

/** A read of the log that stays open as long as whoever asks goes on where it is. */
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

  /** A read that was kept open may have ended with its last batch: then it says nothing about what came since. */
  const readOn = async (at: Position): Promise<Read> => {
    const kept = reading;
    const from = await open(at, false);
    const read = await readMany(from.batches, batchEvents);
    from.at = endOf(read.events, at);
    if (!read.isFull) reading = undefined;
    return read.events.length === 0 && from === kept ? readOn(at) : read;
  };

  const follow = async (at: Position): Promise<Read> => {
    const from = await open(at, true);
    const { value, done } = await from.batches.next();
    const events = done === true ? [] : value;
    from.at = endOf(events, at);
    const isFull = events.length >= MANY_EVENTS;
    if (isFull || done === true) await close();
    return { events, isFull };
  };

  return {
    readOn,
    readOrFollow: async (at: Position): Promise<Read> => {
      if (reading?.isFollowing === true && reading.at === at) return follow(at);
      const read = await readOn(at);
      return read.events.length > 0 ? read : follow(at);
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
    batchEvents,
    read: async (at) => {
      try {
        return await reading.readOn(at);
      } catch (error) {
        await reading.close().catch(() => undefined);
        throw error;
      }
    },
    readAlone: async (at, abort) => {
      const batches = iterate(log, at, { signal: abort });
      try {
        return (await readMany(batches, batchEvents)).events;
      } finally {
        await batches.return?.();
      }
    },
    follow: async (at) => {
      while (!ending.aborted) {
        try {
          const found = await reading.readOrFollow(at);
          if (found.events.length > 0) return found;
        } catch (error) {
          await reading.close().catch(() => undefined);
          onError(error);
        }
        await pause(RETRY_MS, ending);
      }
      return { events: [], isFull: false };
    },
    distance: (low, high) => log.distance(afterOf(low).after, high),
    close: reading.close,
  };
};
