import { whenReachable, type AwaitedStore, type WaitingForStore } from '../../async/reachable-store';
import { fault, isFinal, messageOf, type Fault } from '../../fault';
import { TIMES } from '../../times';
import {
  appendUntilCertain,
  mustBeAppendable,
  mustHaveFormat,
  type Batch,
  type Continuity,
  type EventLog,
  type Head,
  type NewEvent,
  type Position,
} from '../event-log';
import type { Streams } from '../streams';
import { appending } from './append';
import { connectTo, serversOf, type Connection } from './connection';
import { follow } from './follow';
import { ownStream } from './own-stream';
import { serialised } from './record';
import { streamReader } from './stream-reader';
import { mergedUpTo } from './tenant-reader';
import { wholeLog, type WholeLog } from './whole-log';

interface EventStoreOptions extends WaitingForStore {
  /** Thrown if there is no log, instead of creating one. */
  readonly missingFault?: Fault | undefined;
  /** The log is the target of a copy, which must be unfinished. */
  readonly isCopy?: boolean;
  readonly doubtMs?: number;
}

const eventStoreAt = (servers: string): AwaitedStore => ({
  name: `the event store at ${servers}`,
  final: (error) => (isFinal(error) ? (error as Fault) : undefined),
  late: (seconds, error) =>
    fault(
      'log_unavailable',
      `The event store at ${servers} could not be reached within ${seconds} s. Start it, or correct EVENTSTORE_URL. ${messageOf(error)}`,
    ),
});

/** Up to the head at the time of the call. */
const readUpToHead = async function* (
  log: WholeLog,
  upTo: (last: Position) => AsyncIterable<Batch>,
  signal?: AbortSignal,
): AsyncGenerator<Batch> {
  const head = await log.head();
  if (head === undefined) return;
  for await (const batch of upTo(head.position)) {
    if (signal?.aborted === true) return;
    yield batch;
  }
};

/**
 * Uses the end of the whole server, since our last event may have been scavenged. Reads it before the event, so that a
 * log that was rolled back cannot grow past the event in between.
 */
const continuityIn = async (log: WholeLog, known: Head | undefined): Promise<Continuity> => {
  if (known === undefined) return 'whole';
  const end = await log.end();
  const found = await log.at(known.position);
  if (found?.id === known.eventId) return 'whole';
  return found === undefined && end >= known.position ? 'missing' : 'set_back';
};

/** Positions are file offsets: the events between two are counted if there are few, and estimated by those otherwise. */
const MAX_COUNTED_EVENTS = 1_000;

const bytesBetween = (after: Position, upTo: Position): number => Number(BigInt(upTo) - BigInt(after));

const distanceIn =
  (log: WholeLog): EventLog['distance'] =>
  async (from, upTo) => {
    const after = from ?? log.start();
    let count = 0;
    let last = after;
    if (after < upTo)
      for await (const batch of log.upTo(after, upTo)) {
        count += batch.length;
        last = batch.at(-1)?.position ?? last;
        if (count >= MAX_COUNTED_EVENTS)
          return Math.round((count * bytesBetween(after, upTo)) / bytesBetween(after, last));
      }
    return count;
  };

const appendThrough =
  (connection: Connection, streams: Streams, log: WholeLog): EventLog['append'] =>
  async (stream, events, expected, withinMs = TIMES.appendMs) => {
    const records = events.map(serialised);
    mustBeAppendable(events, records);
    if (connection.isClosed()) throw fault('log_unavailable', 'The event log is closed.');
    const attempt = appending(connection, { stream, events: records, expected });
    const appended = await appendUntilCertain(attempt, withinMs);
    const { id } = events.at(-1) as NewEvent;
    if (streams.holds(stream)) log.grew({ position: appended.position, eventId: id.toLowerCase() });
    return appended;
  };

/** The event log on EventStoreDB or KurrentDB: our streams on a server that other programs may share. */
export const eventStoreDbEventLog = async (
  url: string,
  streams: Streams,
  options: EventStoreOptions,
): Promise<EventLog> => {
  const store = eventStoreAt(serversOf(url));
  const connection = connectTo(url);
  const reader = streamReader(connection);
  const log = wholeLog(connection, streams);
  const append = appendThrough(connection, streams, log);
  const closing = new AbortController();
  const close = async (): Promise<void> => {
    closing.abort();
    await connection.close();
  };

  const own = ownStream(reader, append, streams.log());
  const findLog = async () => {
    const found = await own.findOrCreate(options);
    mustHaveFormat(found.format, store.name, options.isCopy === true);
    return found;
  };
  const opening = whenReachable(findLog, store, options);
  const { identity, position } = await opening.catch(async (error: unknown) => {
    await close();
    throw error;
  });
  log.begins(position);

  const continuity = async (known?: Head): Promise<Continuity> =>
    (await own.identity()) === identity ? continuityIn(log, known) : 'replaced';
  const { onError, doubtMs } = options;
  const following = { connection, log, continuity, doubtMs, closing: closing.signal, onError };

  return {
    identity: async () => identity,
    append,
    readStream: (stream, after = -1) => reader.forwards(stream, after),
    revisionAt: reader.revisionAt,
    readTenant: (tenantId, { after = '', upTo, signal } = {}) => {
      const names = { tenant: streams.tenant(tenantId), activity: streams.activity(tenantId) };
      const read = (last: Position): AsyncIterable<Batch> => mergedUpTo(reader, names, after, last);
      return upTo === undefined ? readUpToHead(log, read, signal) : read(upTo);
    },
    readAll: ({ after = '', follow: isFollowing = false, signal } = {}) =>
      isFollowing
        ? follow(following, after, signal)
        : readUpToHead(log, (last) => log.upTo(after, last), signal),
    head: log.head,
    distance: distanceIn(log),
    continuity,
    completeCopy: own.completeCopy,
    close,
  };
};
