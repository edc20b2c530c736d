import { BACKWARDS, END, type EventStoreDBClient } from '@eventstore/db-client';
import { singleFlight } from '../../async/concurrency';
import { TIMES } from '../../times';
import type { Batch, Head, LoggedEvent, Position } from '../event-log';
import type { Streams } from '../streams';
import type { Connection } from './connection';
import { filteredRead } from './filtered-read';
import { commitPosition } from './record';
import { batchesOf, READ_AHEAD, sourceOf } from './source';
import { fromLeader, resuming } from './stream-reader';

/** Finds our newest event in a log that other programs write to as well. */
export interface NewestEvent {
  head(): Promise<Head | undefined>;
  /** Sets the position before which there are none of our events. */
  begins(at: Position): void;
  start(): Position;
  /** Called when an append of this process succeeded. */
  grew(head: Head): void;
  /** The position of the server's last event, whoever wrote it. */
  end(): Promise<Position>;
}

/** A wider window skips other streams faster. */
export const SEARCH_WINDOW = 500;

/** Short, because the last event is usually ours. */
const FIRST_PAGE = 8;
const MAX_PAGE_EVENTS = 4_096;

/** Reads `count` events backwards from just before a position, or from the end. */
type ReadBack = (
  client: EventStoreDBClient,
  from: Position | undefined,
  count: number,
) => AsyncIterable<Batch>;

const noEvents = async function* (): AsyncGenerator<Batch> {};

const unfiltered: ReadBack = (client, from, maxCount) => {
  const fromPosition = from === undefined ? END : commitPosition(from);
  const options = { direction: BACKWARDS, fromPosition, maxCount, ...fromLeader } as const;
  return batchesOf(sourceOf(client.readAll(options, READ_AHEAD)), TIMES.silentReadMs);
};

/** Filtered by our prefixes, including the event with which our log starts. */
const filteredByPrefix =
  (streams: Streams): ReadBack =>
  (client, before = '', maxCount) => {
    const prefixes = [...streams.prefixes(), streams.log()];
    return batchesOf(
      sourceOf(filteredRead(client, { before, maxCount, prefixes, window: SEARCH_WINDOW })),
      TIMES.waitMs, // nothing is sent while it skips other programs' events, about a million per second
    );
  };

/** Reads `count` events, but stops at one that ends the search. */
const pagesBack =
  (connection: Connection, isEnd: (event: LoggedEvent) => boolean) =>
  async (read: ReadBack, from: Position | undefined, count: number): Promise<Batch> => {
    const found: LoggedEvent[] = [];
    const reading = resuming(connection, (client, last) => {
      const left = count - found.length;
      // The server never completes a read of zero events.
      return left === 0 ? noEvents() : read(client, last?.position ?? from, left);
    });
    for await (const batch of reading) {
      found.push(...batch);
      if (batch.some(isEnd)) break;
    }
    return found;
  };

export const newestEvent = (connection: Connection, streams: Streams): NewestEvent => {
  const isOurs = ({ stream }: LoggedEvent): boolean => streams.holds(stream);
  const filtered = filteredByPrefix(streams);

  /** The last known head, and how far the log has been searched for it. */
  let known: Head | undefined;
  let searched: Position = '';
  let start: Position = '';
  const page = pagesBack(connection, (event) => isOurs(event) || event.position <= start);

  const grew = (head: Head): void => {
    if (known === undefined || head.position > known.position) known = head;
    if (head.position > searched) searched = head.position;
  };

  /** Whether a page contains our newest event, or reaches what was searched before. */
  const isFoundIn = (events: Batch): boolean => {
    const found = events.find((event) => isOurs(event) || event.position <= searched);
    if (found !== undefined && isOurs(found)) grew({ position: found.position, eventId: found.id });
    return found !== undefined;
  };

  const searchBefore = async (first: Position, read: ReadBack): Promise<void> => {
    let from = first;
    for (let count = FIRST_PAGE * 4; ; count = Math.min(MAX_PAGE_EVENTS, count * 4)) {
      const events = await page(read, from, count);
      if (isFoundIn(events) || events.length < count) return;
      from = events.at(-1)?.position ?? '';
    }
  };

  const search = async (): Promise<void> => {
    // An append that completes in the meantime may be beyond the page.
    const floor = searched;
    const events = await page(unfiltered, undefined, FIRST_PAGE);
    const first = events[0]?.position ?? '';
    const last = events.at(-1)?.position ?? '';
    // A log that ends before what was searched is another log: it was restored from a backup.
    if (first < floor) {
      known = undefined;
      searched = start <= first ? start : '';
    }
    if (!isFoundIn(events) && events.length === FIRST_PAGE) {
      const readAll = (): Promise<void> => searchBefore(last, unfiltered);
      // The first time, let the server skip other programs' events, if it can do so in time. Later there are only a few
      // new events to read.
      await (searched === start ? searchBefore(last, filtered).catch(readAll) : readAll());
    }
    if (first > searched) searched = first;
  };

  const searches = singleFlight(search);
  return {
    head: () => searches.fresh().then(() => known),
    begins: (at) => void (start = searched = at),
    start: () => start,
    grew,
    end: async () => (await page(unfiltered, undefined, 1))[0]?.position ?? '',
  };
};
