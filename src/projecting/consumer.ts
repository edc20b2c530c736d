import { monotonicMs, pause } from '../clock';
import { decode, type Decoded } from '../event-log/codec';
import type { EventLog, LoggedEvent, Position, ReadFrom } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { signal, type Signal } from '../signal';

/** An event of the log, decoded at first use and once for every run that takes it. */
export interface BatchEvent {
  readonly logged: LoggedEvent;
  /** Whose stream it belongs to; undefined if the stream is not one of ours. */
  readonly owner: ReturnType<Streams['parse']>;
  readonly decoded: Decoded;
}

export type Batch = readonly BatchEvent[];

/** The events after a position, in log order. It ends when the signal is aborted, if not before. */
export type Batches = (after: Position | undefined, abort?: AbortSignal) => AsyncIterable<Batch>;

/** A class, because there are so many of them: objects that each have a getter of their own cost far more. */
class LazilyDecoded implements BatchEvent {
  #decoded: Decoded | undefined;

  constructor(
    readonly logged: LoggedEvent,
    readonly owner: BatchEvent['owner'],
    private readonly streams: Streams,
  ) {}

  get decoded(): Decoded {
    return (this.#decoded ??= decode(this.logged, this.streams));
  }
}

export const batchOf = (events: readonly LoggedEvent[], streams: Streams): Batch =>
  events.map((logged) => new LazilyDecoded(logged, streams.parse(logged.stream), streams));

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

interface Read {
  readonly events: readonly LoggedEvent[];
  /** The batch is full: there is more to read. */
  readonly isFull: boolean;
}

interface Reading {
  readonly batches: AsyncIterator<readonly LoggedEvent[]>;
  /** Everything up to here has been read from it. */
  at: Position;
  readonly isFollowing: boolean;
}

const endOf = (events: readonly LoggedEvent[], otherwise: Position): Position =>
  events.at(-1)?.position ?? otherwise;

/** The empty position is before everything. */
const afterOf = (at: Position): { readonly after?: Position } => (at === '' ? {} : { after: at });

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

const iterate = (log: EventLog, at: Position, more: Omit<ReadFrom, 'after'> = {}) =>
  log.readAll({ ...afterOf(at), ...more })[Symbol.asyncIterator]();

/** Reads the log batch by batch, and at its end waits for what arrives. A read stays open as long as it is of use. */
const batchReader = (log: EventLog, batchEvents: number, abort: AbortSignal) => {
  let reading: Reading | undefined;

  const close = async (): Promise<void> => {
    const { batches } = reading ?? {};
    reading = undefined;
    await batches?.return?.();
  };

  const open = async (at: Position, isFollowing: boolean): Promise<Reading> => {
    if (reading?.at === at && reading.isFollowing === isFollowing) return reading;
    await close();
    const batches = iterate(log, at, { follow: isFollowing, signal: abort });
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
    read: async (at: Position, mayFollow: boolean): Promise<Read> => {
      if (reading?.isFollowing === true && reading.at === at) return follow(at);
      const read = await readOn(at);
      return read.events.length > 0 || !mayFollow ? read : follow(at);
    },
    close,
  };
};

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
  readonly log: EventLog;
  readonly batchEvents: number;
  readonly members: Set<Member>;
  /** A batch has been read, or a member has finished one or left. */
  readonly changed: Signal;
  readonly read: (at: Position, mayFollow: boolean) => Promise<Read>;
  readonly streams: Streams;
  shared?: SharedBatch | undefined;
  turning?: Promise<void> | undefined;
}

/** Nobody waits longer than this for a member that is still busy with the last batch. */
const LONGEST_WAIT_MS = 100;

/** Is there anything in it for a member that has reached a position, as far as is known? */
const covers = ({ after, end }: SharedBatch, at: Position): boolean =>
  after <= at && (end === undefined || at < end);

const isBeingRead = (shared: SharedBatch | undefined): boolean =>
  shared !== undefined && shared.end === undefined;

/** Members that keep pace with each other wait for each other, but only while there is more to read. */
const isInWork = ({ members, shared }: State): boolean =>
  shared?.isFull === true && [...members].some(({ last, isWaiting }) => last === shared && !isWaiting);

/** About a batch lies between them, or less. */
const areNear = async ({ log, batchEvents }: State, low: Position, high: Position): Promise<boolean> =>
  low === high || (await log.distance(afterOf(low).after, high)) <= 2 * batchEvents;

/** Where a read has failed, the next one begins anew. */
const share = (state: State, after: Position, mayFollow: boolean): void => {
  const read = async (): Promise<Batch> => {
    try {
      const { events, isFull } = await state.read(after, mayFollow);
      made.isFull = isFull;
      made.end = endOf(events, after);
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
};

/** The next shared batch begins at the lowest of those who wait, except those that are far behind the furthest. */
const turn = async (state: State): Promise<void> => {
  const waiting = [...state.members].filter(({ isWaiting }) => isWaiting);
  const furthest = waiting.reduce((far, { at }) => (at > far ? at : far), '');
  let lowest = furthest;
  for (const { at } of waiting) if (at < lowest && (await areNear(state, at, furthest))) lowest = at;
  share(
    state,
    lowest,
    waiting.some(({ isFollowing }) => isFollowing),
  );
};

const turnOnce = (state: State): Promise<void> =>
  (state.turning ??= turn(state).finally(() => (state.turning = undefined)));

/** A member that is far behind reads by itself. One that is near waits for the next shared batch, if that comes soon. */
const isFarBehind = async (state: State, { at }: Member): Promise<boolean> => {
  const { shared } = state;
  if (shared === undefined || at >= shared.after) return false;
  return !shared.isFull || !(await areNear(state, at, shared.after));
};

/** Undefined: there is none for a member that is so far behind, or it was aborted. */
const nextShared = async (state: State, me: Member, abort: AbortSignal): Promise<SharedBatch | undefined> => {
  const latest = monotonicMs() + LONGEST_WAIT_MS;
  while (!abort.aborted) {
    const isFar = await isFarBehind(state, me);
    const { shared } = state;
    if (shared !== undefined && covers(shared, me.at)) {
      while (shared.end === undefined && !abort.aborted) await state.changed.wait({ abort });
      return abort.aborted ? undefined : shared;
    }
    if (isFar || isBeingRead(shared)) return undefined;
    const left = latest - monotonicMs();
    if (isInWork(state) && left > 0) await state.changed.wait({ withinMs: left, abort });
    else await turnOnce(state);
  }
  return undefined;
};

const readAlone = async (
  { log, streams, batchEvents }: State,
  { at }: Member,
  abort: AbortSignal,
): Promise<Batch> => {
  const batches = iterate(log, at, { signal: abort });
  try {
    return batchOf((await readMany(batches, batchEvents)).events, streams);
  } finally {
    await batches.return?.();
  }
};

/** What a member is given next, from its own position on. An empty one: that was the end of the log. */
const nextBatch = async (state: State, me: Member, abort: AbortSignal): Promise<Batch> => {
  me.isWaiting = true;
  state.changed.notify();
  const shared = await nextShared(state, me, abort);
  me.last = shared;
  me.isWaiting = false;
  if (abort.aborted) return [];
  return shared === undefined ? readAlone(state, me, abort) : shared.reading;
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

const RETRY_MS = 500;

export interface ConsumerOptions {
  /** Called when the log cannot be followed; it is tried again. */
  readonly onError?: (error: unknown) => void;
  /** A full batch has so many events, or a few more. */
  readonly batchEvents?: number;
}

export const consumer = (
  log: EventLog,
  streams: Streams,
  { onError = () => undefined, batchEvents = BATCH_EVENTS }: ConsumerOptions = {},
): Consumer => {
  const ending = new AbortController();
  const reader = batchReader(log, batchEvents, ending.signal);

  const read = async (at: Position, mayFollow: boolean): Promise<Read> => {
    while (!ending.signal.aborted)
      try {
        const found = await reader.read(at, mayFollow);
        if (found.events.length > 0 || !mayFollow) return found;
        await pause(RETRY_MS, ending.signal);
      } catch (error) {
        await reader.close().catch(() => undefined);
        if (!mayFollow) throw error;
        onError(error);
        await pause(RETRY_MS, ending.signal);
      }
    return { events: [], isFull: false };
  };

  const state: State = { log, batchEvents, streams, read, members: new Set(), changed: signal() };
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
