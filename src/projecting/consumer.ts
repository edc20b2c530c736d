import { monotonicMs } from '../async/clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { condition, type Condition } from '../async/condition';
import { batchOf, type Batch } from './batch';
import { batchReader, type BatchReader, type ReaderOptions } from './batch-reader';

/** The events after a position, in log order. Ends when the signal is aborted, if not before. */
export type Batches = (after: Position | undefined, abort?: AbortSignal) => AsyncIterable<Batch>;

/** One of the runs that share the consumer. */
interface Member {
  /** Everything up to here has been delivered to it. */
  at: Position;
  /** At the end of the log it waits for new events. */
  readonly isFollowing: boolean;
  /** It has finished its last batch. */
  isWaiting: boolean;
  last?: SharedBatch | undefined;
}

/** Delivered to every member that has reached `after`. */
interface SharedBatch {
  readonly after: Position;
  readonly reading: Promise<Batch>;
  /** Undefined while it is being read. */
  end?: Position;
  isFull: boolean;
}

interface State {
  readonly reader: BatchReader;
  readonly streams: Streams;
  readonly members: Set<Member>;
  /** Notified when a batch has been read, and when a member has finished one or left. */
  readonly changed: Condition;
  shared?: SharedBatch | undefined;
  starting?: Promise<SharedBatch> | undefined;
}

/** The maximum wait for a member that is still busy with the last batch. */
const MAX_WAIT_MS = 100;

/** Whether the batch contains, or may contain, events after this position. */
const covers = ({ after, end }: SharedBatch, at: Position): boolean =>
  after <= at && (end === undefined || at < end);

const isBeingRead = (shared: SharedBatch | undefined): boolean =>
  shared !== undefined && shared.end === undefined;

/** Whether a member is still busy with a full batch: while there is more to read, members wait for each other. */
const isInWork = ({ members, shared }: State): boolean =>
  shared?.isFull === true && [...members].some(({ last, isWaiting }) => last === shared && !isWaiting);

/** At most about two batches apart. */
const areNear = async ({ reader }: State, low: Position, high: Position): Promise<boolean> =>
  low === high || (await reader.distance(low, high)) <= 2 * reader.batchEvents;

/** Starts reading a batch for all. If that fails, the next caller starts over. */
const share = (state: State, after: Position, mayFollow: boolean): SharedBatch => {
  const read = async (): Promise<Batch> => {
    try {
      const { events, isFull } = await state.reader[mayFollow ? 'follow' : 'read'](after);
      batch.isFull = isFull;
      batch.end = events.at(-1)?.position ?? after;
      return batchOf(events, state.streams);
    } catch (error) {
      if (state.shared === batch) state.shared = undefined;
      batch.end = after;
      throw error;
    } finally {
      state.changed.notify();
    }
  };
  const batch: SharedBatch = { after, reading: Promise.resolve().then(read), isFull: false };
  batch.reading.catch(() => undefined);
  state.shared = batch;
  return batch;
};

/** Starts the next shared batch at the lowest waiting member, ignoring those far behind the furthest. */
const shareNextBatch = async (state: State): Promise<SharedBatch> => {
  const waiting = [...state.members].filter(({ isWaiting }) => isWaiting);
  const furthest = waiting.reduce((far, { at }) => (at > far ? at : far), '');
  let lowest = furthest;
  for (const { at } of waiting) if (at < lowest && (await areNear(state, at, furthest))) lowest = at;
  return share(
    state,
    lowest,
    waiting.some(({ isFollowing }) => isFollowing),
  );
};

const startNextBatch = (state: State): Promise<SharedBatch> =>
  (state.starting ??= shareNextBatch(state).finally(() => (state.starting = undefined)));

/** A member far behind reads on its own. One nearby waits for the next shared batch if that is due soon. */
const isFarBehind = async (state: State, { at, isFollowing }: Member): Promise<boolean> => {
  const { shared } = state;
  if (shared === undefined || at >= shared.after) return false;
  const isNextSoon = shared.isFull || (isBeingRead(shared) && !isFollowing);
  return !isNextSoon || !(await areNear(state, at, shared.after));
};

/** Undefined: the member is too far behind for a shared batch, or was aborted. */
const findShared = async (
  state: State,
  member: Member,
  abort: AbortSignal,
): Promise<SharedBatch | undefined> => {
  const latest = monotonicMs() + MAX_WAIT_MS;
  while (!abort.aborted) {
    const isFar = await isFarBehind(state, member);
    const { shared } = state;
    if (shared !== undefined && covers(shared, member.at)) return shared;
    const left = latest - monotonicMs();
    if (isFar || (isBeingRead(shared) && left <= 0)) return undefined;
    if ((isInWork(state) || isBeingRead(shared)) && left > 0)
      await state.changed.wait({ withinMs: left, abort });
    else {
      // It may already be read and empty: that is the end of the log.
      const batch = await startNextBatch(state);
      if (batch.after <= member.at) return batch;
    }
  }
  return undefined;
};

/** The next batch for a member; it may start before the member's position. Empty: the end of the log. */
const nextBatch = async (state: State, member: Member, abort: AbortSignal): Promise<Batch> => {
  member.isWaiting = true;
  state.changed.notify();
  const shared = await findShared(state, member, abort);
  member.last = shared;
  member.isWaiting = false;
  while (shared !== undefined && shared.end === undefined && !abort.aborted)
    await state.changed.wait({ abort });
  if (abort.aborted) return [];
  return shared?.reading ?? batchOf(await state.reader.readAlone(member.at, abort), state.streams);
};

async function* consume(
  state: State,
  member: Member,
  upTo: Position | undefined,
  abort: AbortSignal,
): AsyncGenerator<Batch> {
  state.members.add(member);
  try {
    while (!abort.aborted && (upTo === undefined || member.at < upTo)) {
      const batch = await nextBatch(state, member, abort);
      if (batch.length === 0 && upTo !== undefined) return;
      const { at } = member;
      const due = batch.filter(
        ({ logged: { position } }) => position > at && (upTo === undefined || position <= upTo),
      );
      member.at = due.at(-1)?.logged.position ?? at;
      if (due.length > 0) yield due;
    }
  } finally {
    state.members.delete(member);
    state.changed.notify();
  }
}

/**
 * Reads the log once for all runs of a thread: from the lowest checkpoint on, every batch is decoded once and delivered
 * to every run. A run that is far behind, because it started later, failed or is slow, reads the log on its own until it
 * has caught up, and no other run waits for it.
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
  const state: State = { reader, streams, members: new Set(), changed: condition() };
  const batches =
    (upTo?: Position): Batches =>
    (after, abort) => {
      const member: Member = { at: after ?? '', isFollowing: upTo === undefined, isWaiting: false };
      return consume(state, member, upTo, AbortSignal.any([ending.signal, ...(abort ? [abort] : [])]));
    };
  return {
    upTo: batches,
    follow: batches(),
    close: async () => {
      ending.abort();
      await reader.close();
    },
  };
};
