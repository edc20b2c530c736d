import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { batchOf, type Batch } from './batch';
import { batchReader, type BatchReader, type ReaderOptions } from './batch-reader';

/** The events after a position, in log order. Ends when the signal is aborted, if not before. */
export type Batches = (after: Position | undefined, abort?: AbortSignal) => AsyncIterable<Batch>;

/** A batch that runs share. */
interface SharedBatch {
  readonly after: Position;
  readonly reading: Promise<Batch>;
  /** Undefined while it is being read. */
  end?: Position;
}

interface State {
  readonly reader: BatchReader;
  readonly streams: Streams;
  /** The newest first. The last few are kept for runs that are a little behind, which so join the others. */
  recent: readonly SharedBatch[];
}

const MAX_RECENT = 4;

const covers = ({ after, end }: SharedBatch, at: Position): boolean =>
  after <= at && (end === undefined || at < end);

/** Undefined: aborted first. */
const unlessAborted = async <T>(work: Promise<T>, abort: AbortSignal): Promise<T | undefined> => {
  let stop = (): void => undefined;
  const stopped = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    abort.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([work, stopped]);
  } finally {
    abort.removeEventListener('abort', stop);
  }
};

/** Starts reading a batch for all that are at this position, or come there. */
const share = (state: State, after: Position, isFollowing: boolean): SharedBatch => {
  const { reader, streams } = state;
  const isFirst = state.recent.every(({ end }) => end !== undefined);
  const read = async (): Promise<Batch> => {
    try {
      const events = await reader[isFirst ? (isFollowing ? 'follow' : 'read') : 'readAlone'](after);
      batch.end = events.at(-1)?.position ?? after;
      return batchOf(events, streams);
    } catch (error) {
      batch.end = after;
      throw error;
    }
  };
  const batch: SharedBatch = { after, reading: Promise.resolve().then(read) };
  batch.reading.catch(() => undefined);
  const known = state.recent.filter(({ end }) => end !== undefined).slice(0, MAX_RECENT - 1);
  state.recent = [batch, ...state.recent.filter(({ end }) => end === undefined), ...known];
  return batch;
};

/** The next batch for a run; it may start before the run's position. Empty: the end of the log, or aborted. */
const nextBatch = async (
  state: State,
  at: Position,
  isFollowing: boolean,
  abort: AbortSignal,
): Promise<Batch> => {
  while (!abort.aborted) {
    const batch = state.recent.find((known) => covers(known, at)) ?? share(state, at, isFollowing);
    const events = await unlessAborted(batch.reading, abort);
    if (events === undefined) return [];
    // What began before this position and has turned out to end before it as well is of no use.
    if (batch.after === at || covers(batch, at)) return events;
  }
  return [];
};

async function* consume(
  state: State,
  after: Position,
  upTo: Position | undefined,
  abort: AbortSignal,
): AsyncGenerator<Batch> {
  let at = after;
  while (!abort.aborted && (upTo === undefined || at < upTo)) {
    const batch = await nextBatch(state, at, upTo === undefined, abort);
    const from = at;
    const due = batch.filter(
      ({ logged: { position } }) => position > from && (upTo === undefined || position <= upTo),
    );
    // The end of the log, or the last event that is due is gone.
    if (due.length === 0 && upTo !== undefined) return;
    at = due.at(-1)?.logged.position ?? at;
    if (due.length > 0) yield due;
  }
}

/**
 * Reads the log for all runs of a thread. Runs at the same position form a cohort: each batch is read and decoded once
 * for all of them. One that is elsewhere, because it started later, failed or is slow, reads by itself and joins the
 * others where its batches meet theirs, at the head of the log if not before. No run waits for another.
 */
export interface Consumer {
  /** The events up to and including a position. Throws if the log cannot be read. */
  upTo(last: Position): Batches;
  /** Keeps following the log, and retries when it fails. */
  readonly follow: Batches;
  /** Ends all iterations. */
  close(): Promise<void>;
}

export const consumer = (log: EventLog, streams: Streams, options: ReaderOptions = {}): Consumer => {
  const ending = new AbortController();
  const reader = batchReader(log, ending.signal, options);
  const state: State = { reader, streams, recent: [] };
  const batches =
    (upTo?: Position): Batches =>
    (after, abort) =>
      consume(state, after ?? '', upTo, AbortSignal.any([ending.signal, ...(abort ? [abort] : [])]));
  return {
    upTo: batches,
    follow: batches(),
    close: async () => {
      ending.abort();
      await reader.close();
    },
  };
};
