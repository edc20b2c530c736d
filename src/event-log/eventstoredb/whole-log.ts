import { START, streamNameFilter, type EventStoreDBClient } from '@eventstore/db-client';
import type { Head, LoggedEvent, Position } from '../event-log';
import type { Streams } from '../streams';
import { isUnknown, noAnswer } from './answers';
import type { Connection } from './connection';
import { newestOf, SEARCH_WINDOW } from './newest';
import { pointOf } from './record';
import { batchesOf, READ_AHEAD, sourceOf, type Batch, type Source } from './source';
import { fromLeader, persistently, SILENT_MS } from './stream-reader';

/** A checkpoint every so many windows is a sign of life. */
const WINDOW = { maxSearchWindow: SEARCH_WINDOW, checkpointInterval: 4 };

export interface Subscribed {
  readonly source: Source;
  readonly batches: AsyncIterable<Batch>;
  /** Resolves when the server has taken it; perhaps never. */
  readonly confirmed: Promise<void>;
}

/** The log that all streams of the server make up, and in it what is ours. */
export interface WholeLog {
  /** What comes after a position: of ours only, and never anything at or before it. It may end, fail or fall silent. */
  subscribe(after: Position, silentMs?: number): Subscribed;
  head(): Promise<Head | undefined>;
  /** Nothing of ours lies before this position. */
  begins(at: Position): void;
  start(): Position;
  /** An append of this process was answered. */
  grew(head: Head): void;
  /** From just after a position up to another one that is in the log. */
  upTo(after: Position, last: Position): AsyncIterable<Batch>;
  /** The event at exactly this position, whoever wrote it. */
  at(position: Position): Promise<LoggedEvent | undefined>;
  /** The position of the last event of all, whoever wrote it. */
  end(): Promise<Position>;
  isOurs(event: LoggedEvent): boolean;
}

export const wholeLog = (connection: Connection, streams: Streams): WholeLog => {
  const isOurs = ({ stream }: LoggedEvent): boolean => streams.holds(stream);

  const newest = newestOf(connection, streams);

  const subscribeWith = (client: EventStoreDBClient, after: Position, silentMs?: number): Subscribed => {
    const from = after === '' ? newest.start() : after;
    const subscription = client.subscribeToAll(
      {
        fromPosition: from === '' ? START : pointOf(from),
        filter: streamNameFilter({
          prefixes: [...streams.beginnings()],
          ...WINDOW,
          // Only a sign of life. It says how far the server has looked, not how far anybody has got: never a place to resume at.
          checkpointReached: async () => source.alive(),
        }),
        ...fromLeader,
      },
      READ_AHEAD,
    );
    const source = sourceOf(subscription, silentMs);
    const late = setTimeout(
      () => source.stop(noAnswer('The event store did not confirm a subscription.')),
      SILENT_MS,
    );
    const confirmed = new Promise<void>((resolve) => {
      subscription.on('confirmation', () => {
        clearTimeout(late);
        source.alive();
        resolve();
      });
    });
    const batches = async function* (): AsyncGenerator<Batch> {
      try {
        for await (const batch of batchesOf(source)) {
          const ours = batch.filter((event) => event.position > after && isOurs(event));
          if (ours.length > 0) yield ours;
        }
      } finally {
        clearTimeout(late);
      }
    };
    return { source, batches: batches(), confirmed };
  };

  const firstFrom = async (position: Position): Promise<LoggedEvent | undefined> => {
    const reading = persistently(connection, (client) =>
      batchesOf(
        sourceOf(client.readAll({ fromPosition: pointOf(position), maxCount: 1, ...fromLeader }), SILENT_MS),
      ),
    );
    for await (const [event] of reading) return event;
    return undefined;
  };

  const pageUpTo = async function* (after: Position, last: Position): AsyncGenerator<Batch> {
    for await (const batch of subscribeWith(connection.client(), after, SILENT_MS).batches) {
      const wanted = batch.filter((event) => event.position <= last);
      if (wanted.length > 0) yield wanted;
      if ((batch.at(-1)?.position ?? '') >= last) return;
    }
    throw new Error('The event store ended a subscription.');
  };

  return {
    subscribe: (after, silentMs) => subscribeWith(connection.client(), after, silentMs),
    head: newest.head,
    begins: newest.begins,
    start: newest.start,
    grew: newest.grew,
    upTo: (after, last) =>
      persistently(connection, async function* (_, reached) {
        const from = reached?.position ?? after;
        if (from < last) yield* pageUpTo(from, last);
      }),
    at: async (position) => {
      try {
        const found = await firstFrom(position);
        return found?.position === position ? found : undefined;
      } catch (error) {
        // So it answers when no event begins there. Other troubles have the same name, but then nothing else works either.
        if (!isUnknown(error)) throw error;
        await newest.lookBack(undefined, 1);
        return undefined;
      }
    },
    end: async () => (await newest.lookBack(undefined, 1))[0]?.position ?? '',
    isOurs,
  };
};
