import { BACKWARDS, END, type EventStoreDBClient } from '@eventstore/db-client';
import { pause } from '../../clock';
import type { Batch, LoggedEvent, Position } from '../event-log';
import { firstOf } from '../reading';
import { codeOf } from '../../fault';
import { isJsonObject } from '../../json';
import { historyMissing, isDeletedStream, isDenied, isMissingStream, readFault, TOMBSTONED } from './answers';
import type { Connection } from './connection';
import { batchesOf, READ_AHEAD, sourceOf } from './source';

/** A read that gives nothing for this long has failed. */
export const SILENT_MS = 3_000;

/** The leader has the newest events. On a single node this changes nothing. */
export const fromLeader = { requiresLeader: true } as const;

/** After a dropped connection or a new leader the package reconnects, but does not repeat the call by itself. */
const ATTEMPTS = 3;
const AGAIN_MS = 30;

/**
 * Continues after each failure from where it is, as long as there is progress; `open` begins just after the last event that
 * was given. A stream that is not there is empty, and `onMissing` is called.
 */
export const persistently = async function* (
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
      if (silent || isDenied(error) || failures === ATTEMPTS || connection.isClosed()) throw readFault(error);
      await pause(AGAIN_MS * failures);
    }
  }
};

export interface StreamReader {
  /** From just after a revision to the end. */
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

/** The event at a revision or, if that was removed, the last one before it. */
const lastUpTo = (
  connection: Connection,
  stream: string,
  fromRevision: bigint | typeof END,
): Promise<LoggedEvent | undefined> => {
  const options = { fromRevision, direction: BACKWARDS, maxCount: 1, ...fromLeader } as const;
  const reading = persistently(connection, (client) =>
    batchesOf(sourceOf(client.readStream(stream, options)), SILENT_MS),
  );
  return firstOf(orTombstoned(stream, reading));
};

/** Of a stream's metadata: `$tb` means that everything before that revision is hidden. */
const isTruncated = (metadata: LoggedEvent | undefined): boolean =>
  isJsonObject(metadata?.data) && '$tb' in metadata.data;

export const streamReader = (connection: Connection): StreamReader => {
  const mustNotBeRemoved = async (stream: string, after: number, isMissing: boolean): Promise<void> => {
    if (!isMissing && after < 0) throw historyMissing(stream, 'has lost all its events');
    if (isMissing && isTruncated(await lastUpTo(connection, `$$${stream}`, END)))
      throw historyMissing(stream, 'was deleted');
  };

  return {
    /**
     * A stream that was deleted reads like one that never existed, and an append to it would begin a second history: so
     * before it counts as empty, its metadata is checked.
     */
    forwards: async function* (stream, after) {
      let isMissing = false;
      let isEmpty = true;
      const open = (client: EventStoreDBClient, last: LoggedEvent | undefined) => {
        const fromRevision = BigInt((last?.revision ?? after) + 1);
        const reading = client.readStream(stream, { fromRevision, ...fromLeader }, READ_AHEAD);
        return batchesOf(sourceOf(reading), SILENT_MS);
      };
      const reading = persistently(connection, open, () => (isMissing = true));
      for await (const batch of orTombstoned(stream, reading)) {
        isEmpty = false;
        yield batch;
      }
      if (isEmpty) await mustNotBeRemoved(stream, after, isMissing);
    },

    revisionAt: async (stream, position) => {
      let low = -1;
      let high = (await lastUpTo(connection, stream, END))?.revision ?? -1;
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        const found = await lastUpTo(connection, stream, BigInt(middle));
        // A revision that is no longer there was removed from the front of the stream: the one we look for comes after it.
        if (found === undefined || found.position <= position) low = middle;
        else high = middle - 1;
      }
      return low;
    },
  };
};
