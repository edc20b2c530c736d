import { hash } from 'node:crypto';
import { monotonicMs } from '../async/clock';
import type { StreamKind } from '../domain/events';
import { codeOf, fault, messageOf, moreOf } from '../fault';

/**
 * The event log: append-only, the single source of truth. Every adapter keeps every promise on this page, and
 * `test/event-log/contract` checks each of them.
 *
 * Order comes from positions and revisions only, never from clocks.
 */
export interface EventLog {
  /** A random UUID written when the log was created. A copy of the log has its own. */
  identity(): Promise<string>;

  /**
   * Atomically appends all events if the stream is exactly at `expected`, and resolves once they are durable. Repeating
   * an append (same event ids, same `expected`) returns the same result and writes nothing. Always settles within
   * `withinMs`. Faults:
   * - `stream_changed`: the stream is at another revision (`more.actual`, or -1 if there is none); nothing was written.
   * - `event_too_large`: more than MAX_APPEND_BYTES; nothing was written.
   * - `log_unavailable`: nothing was written, for certain.
   * - `outcome_unknown`: it may have been written. The adapter retried once to find out, and could not.
   * - `history_missing`: the stream was permanently removed from the store; nothing was written.
   * - `log_set_back`: the store was replaced while it was open; its replacement does not have these events.
   */
  append(
    stream: string,
    events: readonly NewEvent[],
    expected: Expected,
    withinMs?: number,
  ): Promise<Appended>;

  /**
   * The events of a stream after a revision, in order, in batches. A stream that never existed is empty; one whose
   * events were removed from the store fails with `history_missing`, if the store can tell.
   */
  readStream(stream: string, after?: number): AsyncIterable<Batch>;

  /** The last revision of a stream at or before a position, or -1 if there is none. The cost does not grow with the stream. */
  revisionAt(stream: string, position: Position): Promise<number>;

  /**
   * The events of all streams of one tenant after a position or after a revision of each stream, in log order. The cost
   * does not depend on other tenants.
   */
  readTenant(tenantId: string, from?: ReadTenantFrom): AsyncIterable<Batch>;

  /**
   * The whole log after a position, in order, in bounded batches. With `follow` it waits for new events and reconnects
   * on its own, without gaps or repeats; it ends only when `signal` is aborted or the log is closed, and fails only with
   * `log_set_back`: after it reconnected, the last event that it delivered was no longer in the log.
   */
  readAll(from?: ReadFrom): AsyncIterable<Batch>;

  /** The position and id of the last event, or undefined while the log is empty. */
  head(): Promise<Head | undefined>;

  /**
   * A number that is another one once anything was appended, by whichever process. It is read at once and costs next to
   * nothing. Undefined, or no such member: the log cannot tell.
   */
  changeToken?(): number | undefined;

  /** The number of events after one position, up to and including another; estimated where counting means reading. */
  distance(after: Position | undefined, upTo: Position): Promise<number>;

  /**
   * Whether this is still the log that was opened, with everything that was in it. `known` is an event that was in it
   * before the call. Always asks the store, never a cache.
   */
  continuity(known?: Head): Promise<Continuity>;

  /** Durably marks the target of a copy as complete. Until then it can only be opened as the target of a copy. */
  completeCopy(): Promise<void>;

  /** Ends all followers, and leaves nothing that keeps the process alive. Idempotent. */
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
 * - `missing`: nothing is at its position, but the log continues after it. The event was removed, or the log was set
 *   back and has grown past that position since.
 * - `set_back`: the log ends before it, or has another event in its place.
 * - `replaced`: the log that was opened is gone, and another one or none is in its place.
 */
export type Continuity = 'whole' | 'missing' | 'set_back' | 'replaced';

export interface ReadFrom {
  readonly after?: Position | undefined;
  readonly follow?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface ReadTenantFrom {
  readonly after?: Position | TenantRevisions | undefined;
  /** A position that is already in the log. Undefined: the head at the time of the call. */
  readonly upTo?: Position | undefined;
  /** The caller will take no more events, so a batch need not have more. */
  readonly max?: number;
  readonly signal?: AbortSignal | undefined;
}

/** The last revisions of the streams of a tenant that are known, or -1. */
export type TenantRevisions = Readonly<Record<StreamKind, number>>;

export type Expected = 'no_stream' | number;

export interface NewEvent {
  /** A UUID, which also makes appends idempotent. */
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Only for copies, where it is that of the original, and for the demo. Defaults to the log's own clock. */
  readonly recordedAt?: string;
}

/** An event as stored. Anything that is not JSON is returned as a Buffer, for the reader to interpret. */
export interface LoggedEvent {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: unknown;
  readonly stream: string;
  readonly revision: number;
  readonly position: Position;
  /** As given or recorded, and never changed, so a copy of the log has the same. */
  readonly recordedAt: string;
  /** Approximate size, for bounding memory. */
  readonly bytes?: number;
}

export interface Appended {
  /** The last revision appended. */
  readonly revision: number;
  readonly position: Position;
  /** Its tenant is shown up to here, in a set of read models that had no successor. */
  readonly isShown?: true;
}

export const MAX_APPEND_BYTES = 1_048_576;

/** A batch that is read ends at whichever limit comes first. */
export const BATCH_EVENTS = 512;
export const BATCH_BYTES = 1_048_576;

/** An event as an adapter writes it: its data and metadata are JSON. */
interface SerialisedEvent {
  readonly type: string;
  readonly data: string | Uint8Array;
  readonly metadata: string | Uint8Array;
}

/** What an event counts towards MAX_APPEND_BYTES, as an event store counts it since version 24.10. */
const serialisedBytes = ({ type, data, metadata }: SerialisedEvent): number =>
  Buffer.byteLength(data) + Buffer.byteLength(metadata) + 2 * type.length;

/** The same of an event that nobody writes yet. */
export const bytesOf = ({ type, data, metadata }: NewEvent): number =>
  serialisedBytes({ type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) });

/** Every log stores this number. */
export const LOG_FORMAT = 1;

/** A log stores this number instead until the copy into it is complete. */
export const UNFINISHED_COPY = 0;

/** Every adapter checks this when it opens a log: the target of a copy must be unfinished, any other log complete. */
export const mustHaveFormat = (format: number, store: string, isCopy: boolean): void => {
  if (format === (isCopy ? UNFINISHED_COPY : LOG_FORMAT)) return;
  const log = `The event log in ${store}`;
  const more = { isFinal: true };
  if (isCopy) throw fault('copy_refused', `${log} is not an unfinished copy. Copy into a new one.`, more);
  const unknown = `has format ${format}, and this program knows only format ${LOG_FORMAT}.`;
  if (format !== UNFINISHED_COPY) throw fault('log_of_newer_program', `${log} ${unknown}`, more);
  const remedy = 'Run the same `tenant-ledger log copy` again.';
  throw fault('log_incomplete', `${log} is a copy that was not completed. ${remedy}`, more);
};

/** Whether it is a time as logs write it. */
export const isRecordedTime = (text: unknown): boolean => {
  const time = typeof text === 'string' ? Date.parse(text) : NaN;
  return !Number.isNaN(time) && new Date(time).toISOString() === text;
};

/** Every adapter checks this before appending what it has serialised. */
export const mustBeAppendable = (events: readonly NewEvent[], serialised: readonly SerialisedEvent[]) => {
  if (events.length === 0) throw new TypeError('There is nothing to append.');
  for (const { recordedAt } of events)
    if (recordedAt !== undefined && !isRecordedTime(recordedAt))
      throw new TypeError(`${recordedAt} is not a time as a log writes it.`);
  const size = serialised.reduce((sum, event) => sum + serialisedBytes(event), 0);
  if (size > MAX_APPEND_BYTES)
    throw fault(
      'event_too_large',
      `One append can hold at most ${MAX_APPEND_BYTES} bytes; this one has ${size}.`,
    );
};

/** The events at or before a position; stops reading after it. */
export async function* upTo(batches: AsyncIterable<Batch>, last: Position): AsyncGenerator<Batch> {
  for await (const batch of batches) {
    const due = batch.filter(({ position }) => position <= last);
    if (due.length > 0) yield due;
    if (due.length < batch.length) return;
  }
}

type Place = Pick<LoggedEvent, 'revision' | 'position'>;

/**
 * The last revision at or before a position, or -1, by binary search: both grow together. Events may be missing, which the
 * reader of a stream notices.
 */
export const revisionBefore = async (
  position: Position,
  last: Place | undefined,
  firstFrom: (revision: number) => Place | undefined | Promise<Place | undefined>,
): Promise<number> => {
  if (last === undefined || last.position <= position) return last?.revision ?? -1;
  let low = -1;
  let high = last.revision;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const found = await firstFrom(middle);
    if (found !== undefined && found.position <= position) low = found.revision;
    else high = middle - 1;
  }
  return low;
};

export const firstOf = async (batches: AsyncIterable<Batch>): Promise<LoggedEvent | undefined> => {
  for await (const [event] of batches) return event;
  return undefined;
};

/** The share of the time that the first attempt may use. */
const FIRST_SHARE = 0.6;

/** Conclusive answers to the second attempt: the first wrote nothing, or its stream or log is gone. */
const CERTAIN = new Set<string | undefined>(['stream_changed', 'history_missing', 'log_set_back']);

/**
 * Appends, and repeats an attempt that got no answer: appends are idempotent, so the second answer tells what became of
 * the first. `attempt` rejects with `no_answer` if it does not know.
 */
export const appendUntilCertain = async (
  attempt: (withinMs: number) => Promise<Appended>,
  withinMs: number,
): Promise<Appended> => {
  const end = monotonicMs() + withinMs;
  try {
    return await attempt(Math.ceil(withinMs * FIRST_SHARE));
  } catch (error) {
    if (codeOf(error) !== 'no_answer') throw error;
  }
  try {
    return await attempt(Math.max(1, end - monotonicMs()));
  } catch (error) {
    if (CERTAIN.has(codeOf(error))) throw error;
    throw fault(
      'outcome_unknown',
      `The event log did not confirm whether the append succeeded. ${messageOf(error)}`,
    );
  }
};

/** Appends to the end of a stream, wherever that is: on a conflict, retries at the actual end. */
export const appendToEnd = async (
  log: Pick<EventLog, 'append'>,
  stream: string,
  events: readonly NewEvent[],
  withinMs?: number,
): Promise<Appended> => {
  for (let end: Expected = 'no_stream'; ;)
    try {
      return await log.append(stream, events, end, withinMs);
    } catch (error) {
      if (codeOf(error) !== 'stream_changed') throw error;
      const actual = Number(moreOf(error)['actual']);
      end = actual < 0 ? 'no_stream' : actual;
    }
};

/** The same UUID for the same text, in any process: version 8 of RFC 9562. */
export const uuidOfText = (text: string): string => {
  const hex = hash('sha256', text);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};

/** A JSON object: neither an array nor binary data. */
export const isJsonObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);

/** Undefined if the text is not JSON. */
export const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
