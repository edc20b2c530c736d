import { monotonicMs, pause } from '../../clock';
import { messageOf, type Fault } from '../../fault';
import {
  APPEND_MS,
  logFault,
  mustBeAppendable,
  type EventLog,
  type NewEvent,
  type Position,
  type ReadFrom,
} from '../event-log';
import { settled } from '../settle';
import type { Streams } from '../streams';
import { isFinal } from './answers';
import { appending } from './append';
import { connectTo, type Connection } from './connection';
import { serversOf } from './connection-string';
import { distances } from './distances';
import { follow } from './follow';
import { identityOf } from './identity';
import { liveOf } from './live';
import { serialised } from './record';
import type { Batch } from './source';
import { streamReader } from './stream-reader';
import { mergedUpTo } from './tenant-reader';
import { wholeLog, type WholeLog } from './whole-log';

export interface Surroundings {
  /** How long a start waits for a server that is not there. */
  readonly waitMs: number;
  /** What went wrong and is tried again. */
  readonly onTrouble: (what: string, error: unknown) => void;
}

const AGAIN_MS = 250;
const TELL_EVERY_MS = 10_000;

/** Tries until it works or the time is over, and says what it waits for. */
const patiently = async <T>(work: () => Promise<T>, servers: string, around: Surroundings): Promise<T> => {
  const seconds = Math.round(around.waitMs / 1_000);
  const end = monotonicMs() + around.waitMs;
  let toldAt = -Infinity;
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (isFinal(error)) throw error;
      const now = monotonicMs();
      if (now >= end) throw gone(servers, seconds, error);
      if (now - toldAt >= TELL_EVERY_MS) {
        around.onTrouble(`Waiting for the event store at ${servers}, ${seconds} s at most.`, error);
        toldAt = now;
      }
      await pause(Math.min(AGAIN_MS, end - now));
    }
};

const gone = (servers: string, seconds: number, error: unknown): Fault =>
  logFault(
    'log_unavailable',
    `The event store at ${servers} was not there within ${seconds} s. Start it, or correct EVENTSTORE_URL. ${messageOf(error)}`,
  );

/** Up to the head that is there when the reading begins. */
const readUpToHead = async function* (
  log: WholeLog,
  after: Position,
  upTo: (after: Position, last: Position) => AsyncIterable<Batch>,
  signal?: AbortSignal,
): AsyncGenerator<Batch> {
  const head = await log.head();
  if (head === undefined) return;
  for await (const batch of upTo(after, head.position)) {
    if (signal?.aborted === true) return;
    yield batch;
  }
};

const mustBeOpen = (connection: Connection): void => {
  if (connection.isClosed()) throw logFault('log_unavailable', 'The event log is closed.');
};

/** The event log on EventStoreDB or KurrentDB: our streams of a server that others may use as well. */
export const eventStoreDbEventLog = async (
  url: string,
  streams: Streams,
  around: Surroundings,
): Promise<EventLog> => {
  const servers = serversOf(url);
  const connection = connectTo(url);
  const reader = streamReader(connection);
  const log = wholeLog(connection, streams);
  const live = liveOf({ connection, log, onTrouble: around.onTrouble });

  const append: EventLog['append'] = async (stream, events, expected, withinMs = APPEND_MS) => {
    mustBeAppendable(events);
    const records = events.map(serialised);
    mustBeOpen(connection);
    const appended = await settled(appending(connection, { stream, events: records, expected }), withinMs);
    const { id } = events.at(-1) as NewEvent;
    if (streams.holds(stream)) log.grew({ position: appended.position, eventId: id.toLowerCase() });
    return appended;
  };

  const close = async (): Promise<void> => {
    live.close();
    await connection.close();
  };

  const { identity, position: start } = await patiently(
    () => identityOf(reader, append, streams.log()),
    servers,
    around,
  ).catch(async (error: unknown) => {
    await close();
    throw error;
  });

  log.begins(start);

  const read = (
    { after = '', follow: stays = false, signal }: ReadFrom,
    upTo: (after: Position, last: Position) => AsyncIterable<Batch>,
    names?: ReadonlySet<string>,
  ): AsyncIterable<Batch> => {
    const isWanted = ({ stream }: { readonly stream: string }): boolean => names?.has(stream) ?? true;
    return stays
      ? follow(live, log, { after, signal, isWanted, upTo })
      : readUpToHead(log, after, upTo, signal);
  };

  return {
    identity: async () => identity,
    append,
    readStream: (stream, after = -1) => reader.forwards(stream, after),
    readTenant: (tenantId, from = {}) => {
      const names = [streams.tenant(tenantId), streams.activity(tenantId)];
      return read(from, (after, last) => mergedUpTo(reader, names, after, last), new Set(names));
    },
    readAll: (from = {}) => read(from, log.upTo),
    head: log.head,
    distance: distances(log),
    eventIdAt: async (position) => (await log.at(position))?.id,
    close,
  };
};
