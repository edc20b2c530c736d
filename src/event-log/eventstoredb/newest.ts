import { BACKWARDS, END, type EventStoreDBClient } from '@eventstore/db-client';
import type { Head, LoggedEvent, Position } from '../event-log';
import type { Streams } from '../streams';
import type { Connection } from './connection';
import { oursBackwards } from './ours-backwards';
import { pointOf } from './record';
import { batchesOf, READ_AHEAD, sourceOf, type Batch, type Source } from './source';
import { fromLeader, persistently, SILENT_MS } from './stream-reader';

/** The newest event of ours, in a log that others write as well. */
export interface Newest {
  head(): Promise<Head | undefined>;
  /** Nothing of ours lies before this position. */
  begins(at: Position): void;
  start(): Position;
  /** An append of this process was answered. */
  grew(head: Head): void;
  /** The last ones of anybody, backwards, from just before a position or the end: so many, or up to one of ours. */
  lookBack(from: Position | undefined, count: number): Promise<Batch>;
}

/** A wider window scans what is not ours faster. */
export const SEARCH_WINDOW = 500;

/** The first look back is short: mostly the last event is ours. */
const FIRST_LOOK = 8;
const MOST_LOOK = 4_096;
/** While the server passes over what others wrote it says nothing: a million events take about a second. */
const SEARCH_MS = 5_000;

/** A read of the next so many, backwards. */
type Look = (client: EventStoreDBClient, from: Position | undefined, count: number) => Source;

const nothing = async function* (): AsyncGenerator<Batch> {};

export const newestOf = (connection: Connection, streams: Streams): Newest => {
  const isOurs = ({ stream }: LoggedEvent): boolean => streams.holds(stream);

  /** The head as last seen, and how far back from the end nothing newer of ours was found. */
  let known: Head | undefined;
  let searched: Position = '';
  let start: Position = '';

  const grew = (head: Head): void => {
    if (known === undefined || head.position > known.position) known = head;
    if (head.position > searched) searched = head.position;
  };
  const forget = (): Promise<void> => {
    known = undefined;
    searched = start < searched ? start : '';
    return searchBack();
  };

  /** Up to so many, and no further than what ends the search. */
  const page = async (look: Look, from: Position | undefined, count: number): Promise<Batch> => {
    const found: LoggedEvent[] = [];
    const reading = persistently(connection, (client, last) => {
      const left = count - found.length;
      // The server never ends a read of none.
      return left === 0 ? nothing() : batchesOf(look(client, last?.position ?? from, left));
    });
    for await (const batch of reading) {
      found.push(...batch);
      if (batch.some((event) => isOurs(event) || event.position <= start)) break;
    }
    return found;
  };

  const all: Look = (client, from, maxCount) => {
    const fromPosition = from === undefined ? END : pointOf(from);
    const options = { direction: BACKWARDS, fromPosition, maxCount, ...fromLeader } as const;
    return sourceOf(client.readAll(options, READ_AHEAD), SILENT_MS);
  };

  /** What might be ours, and the place where the log begins. */
  const ours: Look = (client, before = '', maxCount) => {
    const beginnings = [...streams.beginnings(), streams.log()];
    return sourceOf(
      oursBackwards(client, { before, maxCount, beginnings, window: SEARCH_WINDOW }),
      SEARCH_MS,
    );
  };

  /** From the end backwards: the newest of ours, unless what was searched before comes first. */
  const searchBack = async (): Promise<void> => {
    const floor = searched;
    let count = FIRST_LOOK;
    let top: Position | undefined;
    let from: Position | undefined;
    // The server passes over the rest the first time. Later only what came since is looked at, which is little.
    let mayPassOver = floor === start;
    for (;;) {
      const next = await page(mayPassOver && from !== undefined ? ours : all, from, count).catch(
        (error: unknown) => {
          if (!mayPassOver || from === undefined) throw error;
          return undefined;
        },
      );
      if (next === undefined) {
        // It cannot, or takes too long: then everything is read.
        mayPassOver = false;
        continue;
      }
      top ??= next[0]?.position ?? '';
      // A log that ends before what was searched is another one: a backup was put in its place.
      if (top < floor) return forget();
      const found = next.find((event) => isOurs(event) || event.position <= floor);
      if (found !== undefined && isOurs(found)) grew({ position: found.position, eventId: found.id });
      if (found !== undefined || next.length < count) break;
      from = next.at(-1)?.position;
      count = Math.min(MOST_LOOK, count * 4);
    }
    if (top > searched) searched = top;
  };

  let searching: Promise<void> | undefined;
  return {
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
    lookBack: (from, count) => page(all, from, count),
  };
};
