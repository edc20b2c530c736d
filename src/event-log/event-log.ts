import { fault, type Fault } from '../fault';

/**
 * The event log: append-only, the only truth. Every adapter keeps every promise on this page; `test/event-log/contract`
 * asks each of them for each promise.
 *
 * Order comes from positions and revisions only, never from clocks.
 */
export interface EventLog {
  /** A random UUID that was written when the log was created. A copy, or an older log that was restored, has another history. */
  identity(): Promise<string>;

  /** The name and the version of what keeps it, for people. */
  software(): Promise<string>;

  /**
   * The format of the log (`src/domain/formats.ts`), as the store has it now. A log that was made by a program without
   * formats has the first one.
   */
  format(): Promise<number>;

  /** Raises the format, durably. One that is as high already stays: it never falls, also if several raise it at once. */
  raiseFormat(to: number): Promise<void>;

  /**
   * Appends all the events or none, if the stream is exactly at `expected`, and answers only when they are durable.
   * The same event ids with the same `expected` again give the same answer and no second copy.
   * It always answers within `withinMs`. Faults:
   * - `stream_changed`: the stream is at another revision (`more.actual`, or -1 if there is none); nothing was written.
   * - `event_too_large`: more than MAX_APPEND_BYTES bytes of data; nothing was written.
   * - `log_unavailable`: nothing was written, for certain.
   * - `outcome_unknown`: it may have been written. The adapter tried once more to find out and could not.
   * - `history_missing`: the stream was permanently removed from the store; nothing was written.
   * - `log_set_back`: the store was replaced while it was open; what was written is not in its successor.
   */
  append(
    stream: string,
    events: readonly NewEvent[],
    expected: Expected,
    withinMs?: number,
  ): Promise<Appended>;

  /**
   * A stream's events in order, from just after a revision, in batches. A stream that never existed is empty; one
   * whose events were removed from the store fails with `history_missing`, if the store can tell.
   */
  readStream(stream: string, after?: number): AsyncIterable<Batch>;

  /**
   * All streams of one tenant merged by position, from just after a position. The cost does not grow with other
   * tenants. With `follow` it waits for new events.
   */
  readTenant(tenantId: string, from?: ReadFrom): AsyncIterable<Batch>;

  /**
   * The whole log in order, from just after a position, in bounded batches. With `follow` it waits for new events,
   * reconnects by itself, and neither skips nor repeats; it ends only when `signal` is aborted or the log is closed.
   */
  readAll(from?: ReadFrom): AsyncIterable<Batch>;

  /** The last event's position and id, or undefined while the log is empty. */
  head(): Promise<Head | undefined>;

  /** The streams that lack events before their last one. Omitted by an adapter that would have to read the whole log for it. */
  readonly incompleteStreams?: () => Promise<readonly IncompleteStream[]>;

  /**
   * A position before everything that was recorded at a time or later; undefined: there is nothing earlier. Clocks may
   * have gone back, so some events after it may be earlier. Omitted by an adapter that would have to read the whole log
   * for it.
   */
  readonly positionBefore?: (time: string) => Promise<Position | undefined>;

  /** How many events there are after one position, up to and including another; an estimate where counting would mean reading. */
  distance(after: Position | undefined, upTo: Position): Promise<number>;

  /**
   * Is this still the log that was opened, with everything that was in it? `known` is an event that was in it before the
   * call. It asks the store itself and relies on nothing that this process remembers.
   */
  continuity(known?: Head): Promise<Continuity>;

  /** Ends all followers and leaves nothing behind that keeps the process alive. May be called twice. */
  close(): Promise<void>;
}

export type Batch = readonly LoggedEvent[];

/** Opaque text; its string order is the log's order. */
export type Position = string;

export interface Head {
  readonly position: Position;
  readonly eventId: string;
}

/**
 * - `whole`: the known event is where it was.
 * - `missing`: nothing is at its position, but the log continues after it. The event was removed, or the log was set back
 *   and has grown past it since.
 * - `set_back`: the log ends before it, or has another event in its place.
 * - `replaced`: the log that was opened is gone; another one, or none, is in its place.
 */
export type Continuity = 'whole' | 'missing' | 'set_back' | 'replaced';

interface IncompleteStream {
  readonly stream: string;
  readonly events: number;
  readonly lastRevision: number;
}

export interface ReadFrom {
  readonly after?: Position | undefined;
  readonly follow?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export type Expected = 'no_stream' | number;

export interface NewEvent {
  /** A UUID: the event's identity, and what makes a repeated append harmless. */
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Only for an event that another log has recorded before, as in `LoggedEvent`. Without it, the log uses its own clock. */
  readonly recordedAt?: string;
}

/** As stored in the log. What is not JSON is given as a Buffer of its bytes: the reader decides what that means. */
export interface LoggedEvent {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
  readonly stream: string;
  readonly revision: number;
  readonly position: Position;
  /** As given or recorded, never changed: a copy of the log has the same. */
  readonly recordedAt: string;
  /**
   * When this log itself received the event, only where that is before `recordedAt`: some clock was ahead. The same at
   * every read. Whatever is derived from the event uses it.
   */
  readonly storedAt?: string;
  /** Its approximate size, for those who keep many. */
  readonly bytes?: number;
}

export interface Appended {
  /** Of the last event appended. */
  readonly revision: number;
  readonly position: Position;
}

export const MAX_APPEND_BYTES = 1_048_576;

/** Long enough for a slow disk, short enough for a waiting caller. */
export const APPEND_MS = 1_800;

type LogFaultCode =
  | 'stream_changed'
  | 'event_too_large'
  | 'log_unavailable'
  | 'outcome_unknown'
  | 'history_missing'
  | 'log_set_back';

export const logFault = (code: LogFaultCode, sentence: string, more: Record<string, unknown> = {}): Fault =>
  fault(code, sentence, more);

const isMoment = (text: string): boolean => {
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString() === text;
};

/** What every adapter checks before it appends. */
export const mustBeAppendable = (events: readonly NewEvent[]): void => {
  if (events.length === 0) throw new TypeError('There is nothing to append.');
  for (const { recordedAt } of events)
    if (recordedAt !== undefined && !isMoment(recordedAt))
      throw new TypeError(`${recordedAt} is not a time as a log writes it.`);
  const size = events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event.data)), 0);
  if (size > MAX_APPEND_BYTES)
    throw logFault(
      'event_too_large',
      `One append holds at most ${MAX_APPEND_BYTES} bytes of data; this has ${size}.`,
    );
};
