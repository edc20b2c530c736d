import { monotonicMs } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { signal, type Signal } from '../signal';
import { batchOf, type Batch } from './batch';
import { batchReader, type BatchReader, type ReaderOptions } from './batch-reader';

/** The events after a position, in log order. It ends when the signal is aborted, if not before. */
export type Batches = (after: Position | undefined, abort?: AbortSignal) => AsyncIterable<Batch>;

/** One of those who consume the log together. */
interface Member {
  /** It has been given everything up to here. */
  at: Position;
  /** It stays at the end of the log for what arrives. */
  readonly isFollowing: boolean;
  /** It has finished what it was given last. */
  isWaiting: boolean;
  last?: SharedBatch | undefined;
}

/** What every member gets that has reached `after`. */
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
  /** A batch has been read, or a member has finished one or left. */
  readonly changed: Signal;
  shared?: SharedBatch | undefined;
  turning?: Promise<SharedBatch> | undefined;
}

/** Nobody waits longer than this for a member that is still busy with the last batch. */
const MAX_WAIT_MS = 100;

/** Is there anything in it for a member that has reached a position, as far as is known? */
const covers = ({ after, end }: SharedBatch, at: Position): boolean =>
  after <= at && (end === undefined || at < end);

const isBeingRead = (shared: SharedBatch | undefined): boolean =>
  shared !== undefined && shared.end === undefined;

/** Members that keep pace with each other wait for each other, but only while there is more to read. */
const isInWork = ({ members, shared }: State): boolean =>
  shared?.isFull === true && [...members].some(({ last, isWaiting }) => last === shared && !isWaiting);

/** They are about a batch apart, or less. */
const areNear = async ({ reader }: State, low: Position, high: Position): Promise<boolean> =>
  low === high || (await reader.distance(low, high)) <= 2 * reader.batchEvents;

/** Where a read has failed, the next one begins anew. */
const share = (state: State, after: Position, mayFollow: boolean): SharedBatch => {
  const read = async (): Promise<Batch> => {
    try {
      const { events, isFull } = await state.reader[mayFollow ? 'follow' : 'read'](after);
      made.isFull = isFull;
      made.end = events.at(-1)?.position ?? after;
      return batchOf(events, state.streams);
    } catch (error) {
      if (state.shared === made) state.shared = undefined;
      made.end = after;
      throw error;
    } finally {
      state.changed.notify();
    }
  };
  const made: SharedBatch = { after, reading: Promise.resolve().then(read), isFull: false };
  made.reading.catch(() => undefined);
  state.shared = made;
  return made;
};

/** The next shared batch begins at the lowest of those who wait, except those that are far behind the furthest. */
const turn = async (state: State): Promise<SharedBatch> => {
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

const turnOnce = (state: State): Promise<SharedBatch> =>
  (state.turning ??= turn(state).finally(() => (state.turning = undefined)));

/** A member that is far behind reads by itself. One that is near waits for the next shared batch, if that comes soon. */
const isFarBehind = async (state: State, { at, isFollowing }: Member): Promise<boolean> => {
  const { shared } = state;
  if (shared === undefined || at >= shared.after) return false;
  const isNextSoon = shared.isFull || (isBeingRead(shared) && !isFollowing);
  return !isNextSoon || !(await areNear(state, at, shared.after));
};

/** Undefined: there is none for a member that is so far behind, or it was aborted. */
const findShared = async (state: State, me: Member, abort: AbortSignal): Promise<SharedBatch | undefined> => {
  const latest = monotonicMs() + MAX_WAIT_MS;
  while (!abort.aborted) {
    const isFar = await isFarBehind(state, me);
    const { shared } = state;
    if (shared !== undefined && covers(shared, me.at)) return shared;
    const left = latest - monotonicMs();
    if (isFar || (isBeingRead(shared) && left <= 0)) return undefined;
    if ((isInWork(state) || isBeingRead(shared)) && left > 0)
      await state.changed.wait({ withinMs: left, abort });
    else {
      // It may have been read already, and be empty: that is the end of the log.
      const made = await turnOnce(state);
      if (made.after <= me.at) return made;
    }
  }
  return undefined;
};

/** What a member is given next, from its own position on. An empty one: that was the end of the log. */
const nextBatch = async (state: State, me: Member, abort: AbortSignal): Promise<Batch> => {
  me.isWaiting = true;
  state.changed.notify();
  const shared = await findShared(state, me, abort);
  me.last = shared;
  me.isWaiting = false;
  while (shared !== undefined && shared.end === undefined && !abort.aborted)
    await state.changed.wait({ abort });
  if (abort.aborted) return [];
  return shared?.reading ?? batchOf(await state.reader.readAlone(me.at, abort), state.streams);
};

async function* consume(
  state: State,
  me: Member,
  upTo: Position | undefined,
  abort: AbortSignal,
): AsyncGenerator<Batch> {
  state.members.add(me);
  try {
    while (!abort.aborted && (upTo === undefined || me.at < upTo)) {
      const batch = await nextBatch(state, me, abort);
      if (batch.length === 0 && upTo !== undefined) return;
      const { at } = me;
      const due = batch.filter(
        ({ logged: { position } }) => position > at && (upTo === undefined || position <= upTo),
      );
      me.at = due.at(-1)?.logged.position ?? at;
      if (due.length > 0) yield due;
    }
  } finally {
    state.members.delete(me);
    state.changed.notify();
  }
}

/**
 * Reads the log once for all runs of a thread: from the lowest checkpoint on, every batch is decoded once and given to
 * every run. A run that is far behind the others, because it began later, has failed or is slow, reads the log by itself
 * until it has caught up, and no other run waits for it.
 */
export interface Consumer {
  /** The events up to a position, and not beyond. It fails when the log cannot be read. */
  upTo(last: Position): Batches;
  /** Stays at the end of the log for what arrives, through failures of the log. */
  readonly follow: Batches;
  /** Ends everyone. */
  close(): Promise<void>;
}

export const consumer = (log: EventLog, streams: Streams, options: ReaderOptions = {}): Consumer => {
  const ending = new AbortController();
  const reader = batchReader(log, ending.signal, options);
  const state: State = { reader, streams, members: new Set(), changed: signal() };
  const batches =
    (upTo?: Position): Batches =>
    (after, abort) => {
      const me: Member = { at: after ?? '', isFollowing: upTo === undefined, isWaiting: false };
      return consume(state, me, upTo, AbortSignal.any([ending.signal, ...(abort ? [abort] : [])]));
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
