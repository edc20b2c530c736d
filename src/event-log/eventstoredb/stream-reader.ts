import { BACKWARDS, END, FORWARDS, type Direction, type EventStoreDBClient } from '@eventstore/db-client';
import { pause } from '../../async/clock';
import { codeOf } from '../../fault';
import { TIMES } from '../../times';
import {
  isJsonObject,
  firstOf,
  revisionBefore,
  type Batch,
  type LoggedEvent,
  type Position,
} from '../event-log';
import type { Connection } from './connection';
import { historyMissing, isDeletedStream, isDenied, isMissingStream, readFault, TOMBSTONED } from './errors';
import { batchesOf, READ_AHEAD, sourceOf } from './source';

/** Only the leader is sure to have the newest events. No effect on a single node. */
export const fromLeader = { requiresLeader: true } as const;

/** After a dropped connection or a new leader, the package reconnects but does not repeat the call. */
const MAX_ATTEMPTS = 3;

/**
 * Resumes a read after each failure for as long as there is progress; `open` starts right after the last event delivered.
 * A missing stream counts as empty, and `onMissing` is called.
 */
export const resuming = async function* (
  connection: Connection,
  open: (client: EventStoreDBClient, last: LoggedEvent | undefined) => AsyncIterable<Batch>,
  onMissing: () => void = () => undefined,
): AsyncGenerator<Batch> {
  let last: LoggedEvent | undefined;
  for (let failures = 0; ;) {
    const client = connection.client();
    try {
      for await (const batch of open(client, last)) {
        yield batch;
        last = batch.at(-1);
        failures = 0;
      }
      if (connection.isShut(client)) throw new Error('The connection was closed during a read.');
      return;
    } catch (error) {
      if (isMissingStream(error)) return onMissing();
      if (isDeletedStream(error)) throw error;
      const silent = codeOf(error) === 'no_answer';
      if (silent) connection.renew(client);
      failures += 1;
      if (silent || isDenied(error) || failures === MAX_ATTEMPTS || connection.isClosed())
        throw readFault(error);
      await pause(TIMES.reconnectMs * failures);
    }
  }
};

export interface StreamReader {
  /** The events after a revision. */
  forwards(stream: string, after: number): AsyncIterable<Batch>;
  /** The last revision at or before a position, or -1. */
  revisionAt(stream: string, position: Position): Promise<number>;
}

const orTombstoned = async function* (stream: string, reading: AsyncIterable<Batch>): AsyncGenerator<Batch> {
  try {
    yield* reading;
  } catch (error) {
    throw isDeletedStream(error) ? historyMissing(stream, TOMBSTONED) : error;
  }
};

/** The event at a revision or, if that was removed, the next one in this direction. */
const oneOf = (
  connection: Connection,
  stream: string,
  direction: Direction,
  fromRevision: bigint | typeof END,
): Promise<LoggedEvent | undefined> => {
  const options = { fromRevision, direction, maxCount: 1, ...fromLeader } as const;
  const reading = resuming(connection, (client) =>
    batchesOf(sourceOf(client.readStream(stream, options)), TIMES.silentReadMs),
  );
  return firstOf(orTombstoned(stream, reading));
};

/** In a stream's metadata, `$tb` hides everything before that revision. */
const isTruncated = (metadata: LoggedEvent | undefined): boolean =>
  isJsonObject(metadata?.data) && '$tb' in metadata.data;

export const streamReader = (connection: Connection): StreamReader => {
  const mustNotBeRemoved = async (stream: string, after: number, isMissing: boolean): Promise<void> => {
    if (!isMissing && after < 0) throw historyMissing(stream, 'has lost all its events');
    if (isMissing && isTruncated(await oneOf(connection, `$$${stream}`, BACKWARDS, END)))
      throw historyMissing(stream, 'was deleted');
  };

  return {
    /**
     * A deleted stream reads like one that never existed, and an append to it would start a second history. So check its
     * metadata before taking it for empty.
     */
    forwards: async function* (stream, after) {
      let isMissing = false;
      let isEmpty = true;
      const open = (client: EventStoreDBClient, last: LoggedEvent | undefined) => {
        const fromRevision = BigInt((last?.revision ?? after) + 1);
        const reading = client.readStream(stream, { fromRevision, ...fromLeader }, READ_AHEAD);
        return batchesOf(sourceOf(reading), TIMES.silentReadMs);
      };
      const reading = resuming(connection, open, () => (isMissing = true));
      for await (const batch of orTombstoned(stream, reading)) {
        isEmpty = false;
        yield batch;
      }
      if (isEmpty) await mustNotBeRemoved(stream, after, isMissing);
    },

    revisionAt: async (stream, position) =>
      revisionBefore(position, await oneOf(connection, stream, BACKWARDS, END), (from) =>
        oneOf(connection, stream, FORWARDS, BigInt(from)),
      ),
  };
};
