import { BACKWARDS, END, START, streamNameFilter, type EventStoreDBClient } from '@eventstore/db-client';
import type { Head, LoggedEvent, Position } from '../event-log';
import type { Streams } from '../streams';
import { isUnknown, noAnswer } from './answers';
import type { Connection } from './connection';
import { pointOf } from './record';
import { batchesOf, READ_AHEAD, sourceOf, type Batch, type Source } from './source';
import { fromLeader, persistently, SILENT_MS } from './stream-reader';

/** A wider window scans what is not ours faster; a checkpoint every so many windows is a sign of life. */
const WINDOW = { maxSearchWindow: 500, checkpointInterval: 4 };

/** The log that all streams of the server make up, and in it what is ours. */
export interface WholeLog {
  /** What comes after a position: of ours only, and never anything at or before it. It may end, fail or fall silent. */
  subscribe(
    after: Position,
    silentMs?: number,
  ): { readonly source: Source; readonly batches: AsyncIterable<Batch> };
  head(): Promise<Head | undefined>;
  /** Nothing of ours lies before this position. */
  begins(at: Position): void;
  start(): Position;
  /** An append of this process was answered. */
  grew(head: Head): void;
  /** From just after a position up to another one that is in the log. */
  upTo(after: Position, last: Position): AsyncIterable<Batch>;
  at(position: Position): Promise<LoggedEvent | undefined>;
}

/** The first look back is short: mostly the last event is ours. */
const FIRST_LOOK = 8;
const MOST_LOOK = 4_096;

export const wholeLog = (connection: Connection, streams: Streams): WholeLog => {
  const isOurs = ({ stream }: LoggedEvent): boolean => streams.holds(stream);

  /** The head as last seen, and how far back from the end nothing newer of ours was found. */
  let known: Head | undefined;
  let searched: Position = '';
  let start: Position = '';

  const subscribeWith = (client: EventStoreDBClient, after: Position, silentMs?: number) => {
    const from = after === '' ? start : after;
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
    subscription.on('confirmation', () => {
      clearTimeout(late);
      source.alive();
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
    return { source, batches: batches() };
  };

  const grew = (head: Head): void => {
    if (known === undefined || head.position > known.position) known = head;
    if (head.position > searched) searched = head.position;
  };
  const forget = (): Promise<void> => {
    known = undefined;
    searched = start < searched ? start : '';
    return searchBack();
  };

  /** From the end backwards: the newest of ours, unless what was searched before comes first. */
  const searchBack = async (): Promise<void> => {
    const floor = searched;
    let count = FIRST_LOOK;
    let top: Position | undefined;
    let from: Position | undefined;
    for (;;) {
      const page = await lookBack(from, count);
      top ??= page[0]?.position ?? '';
      // A log that ends before what was searched is another one: a backup was put in its place.
      if (top < floor) return forget();
      const found = page.find((event) => isOurs(event) || event.position <= floor);
      if (found !== undefined && isOurs(found)) grew({ position: found.position, eventId: found.id });
      if (found !== undefined || page.length < count) break;
      from = page.at(-1)?.position;
      count = Math.min(MOST_LOOK, count * 4);
    }
    if (top > searched) searched = top;
  };

  const nothing = async function* (): AsyncGenerator<Batch> {};

  const lookBack = async (from: Position | undefined, maxCount: number): Promise<Batch> => {
    const found: LoggedEvent[] = [];
    const reading = persistently(connection, (client, last) => {
      const after = last?.position ?? from;
      const fromPosition = after === undefined ? END : pointOf(after);
      const left = maxCount - found.length;
      // The server never ends a read of none.
      if (left === 0) return nothing();
      const options = { direction: BACKWARDS, fromPosition, maxCount: left, ...fromLeader } as const;
      return batchesOf(sourceOf(client.readAll(options, READ_AHEAD), SILENT_MS));
    });
    for await (const batch of reading) found.push(...batch);
    return found;
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

  let searching: Promise<void> | undefined;
  return {
    subscribe: (after, silentMs) => subscribeWith(connection.client(), after, silentMs),
    head: async () => {
      // Whoever asks after a search has begun must see what was written since: it needs the next one.
      await searching?.catch(() => undefined);
      await (searching ??= searchBack().finally(() => (searching = undefined)));
      return known;
    },
    begins: (at) => {
      start = at;
      searched = at;
    },
    start: () => start,
    grew,
    upTo: (after, last) =>
      persistently(connection, async function* (_, reached) {
        const from = reached?.position ?? after;
        if (from < last) yield* pageUpTo(from, last);
      }),
    at: async (position) => {
      try {
        const found = await firstFrom(position);
        return found?.position === position && isOurs(found) ? found : undefined;
      } catch (error) {
        // So it answers when no event begins there. Other troubles have the same name, but then nothing else works either.
        if (!isUnknown(error)) throw error;
        await lookBack(undefined, 1);
        return undefined;
      }
    },
  };
};
