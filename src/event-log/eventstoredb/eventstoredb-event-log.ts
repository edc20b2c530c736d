import { monotonicMs, pause } from '../../clock';
import { messageOf, type Fault } from '../../fault';
import {
  APPEND_MS,
  logFault,
  mustBeAppendable,
  type EventLog,
  type NewEvent,
  type Position,
} from '../event-log';
import { settled } from '../settle';
import type { Streams } from '../streams';
import { isFinal, noAnswer } from './answers';
import { appending } from './append';
import { connectTo } from './connection';
import { serversOf } from './connection-string';
import { distanceIn } from './distance';
import { follow, type ReadUpTo } from './follow';
import { continuityOf, identityOf } from './identity';
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
  /** A log that is not there is not made: this is said instead. */
  readonly unlessThere?: Fault | undefined;
}

const AGAIN_MS = 250;
/** The first time at the first failure, or after so long in silence. */
const TELL_AFTER_MS = 2_000;
const TELL_EVERY_MS = 10_000;

/** Says what is waited for, as long as it is. */
const telling = (what: string, { onTrouble }: Surroundings) => {
  let toldAt = -Infinity;
  const tell = (error: unknown): void => {
    if (monotonicMs() - toldAt < TELL_EVERY_MS) return;
    toldAt = monotonicMs();
    onTrouble(what, error);
  };
  const timer = setTimeout(() => tell(noAnswer('It does not answer.')), TELL_AFTER_MS);
  return { tell, end: (): void => clearTimeout(timer) };
};

/** Tries until it works or the time is over. */
const untilItWorks = async <T>(
  work: () => Promise<T>,
  withinMs: number,
  onFailure: (error: unknown) => void,
): Promise<T> => {
  const end = monotonicMs() + withinMs;
  for (;;)
    try {
      return await work();
    } catch (error) {
      const left = end - monotonicMs();
      if (isFinal(error) || left <= 0) throw error;
      onFailure(error);
      await pause(Math.min(AGAIN_MS, left));
    }
};

/** Says what it waits for. */
const patiently = async <T>(work: () => Promise<T>, servers: string, around: Surroundings): Promise<T> => {
  const seconds = Math.round(around.waitMs / 1_000);
  const waiting = telling(`Waiting for the event store at ${servers}, ${seconds} s at most.`, around);
  try {
    return await untilItWorks(work, around.waitMs, waiting.tell);
  } catch (error) {
    throw isFinal(error) ? error : gone(servers, seconds, error);
  } finally {
    waiting.end();
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
  upTo: ReadUpTo,
  signal?: AbortSignal,
): AsyncGenerator<Batch> {
  const head = await log.head();
  if (head === undefined) return;
  for await (const batch of upTo(after, head.position)) {
    if (signal?.aborted === true) return;
    yield batch;
  }
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
  const closing = new AbortController();

  const append: EventLog['append'] = async (stream, events, expected, withinMs = APPEND_MS) => {
    mustBeAppendable(events);
    const records = events.map(serialised);
    if (connection.isClosed()) throw logFault('log_unavailable', 'The event log is closed.');
    const appended = await settled(appending(connection, { stream, events: records, expected }), withinMs);
    const { id } = events.at(-1) as NewEvent;
    if (streams.holds(stream)) log.grew({ position: appended.position, eventId: id.toLowerCase() });
    return appended;
  };

  const close = async (): Promise<void> => {
    closing.abort();
    await connection.close();
  };

  const { identity, position } = await patiently(
    () => identityOf(reader, append, streams.log(), around.unlessThere),
    servers,
    around,
  ).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  log.begins(position);

  const continuity = continuityOf({ reader, log, stream: streams.log(), identity });
  const { onTrouble } = around;
  const following = { connection, log, continuity, closing: closing.signal, onTrouble };

  return {
    identity: async () => identity,
    append,
    readStream: (stream, after = -1) => reader.forwards(stream, after),
    readTenant: (tenantId, { after = '', follow: stays = false, signal } = {}) => {
      const names = [streams.tenant(tenantId), streams.activity(tenantId)];
      const selected = { prefixes: names, has: (stream: string) => names.includes(stream) };
      const upTo: ReadUpTo = (from, last) => mergedUpTo(reader, names, from, last);
      return stays
        ? follow(following, { after, signal, selected, upTo })
        : readUpToHead(log, after, upTo, signal);
    },
    readAll: ({ after = '', follow: stays = false, signal } = {}) =>
      stays
        ? follow(following, { after, signal, selected: log.ours })
        : readUpToHead(log, after, log.upTo, signal),
    head: log.head,
    distance: distanceIn(log),
    continuity,
    close,
  };
};
