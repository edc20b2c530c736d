import { BACKWARDS, END, type EventStoreDBClient } from '@eventstore/db-client';
import type { Batch, Head, LoggedEvent, Position } from '../event-log';
import { sharedRuns } from '../../shared-runs';
import type { Streams } from '../streams';
import type { Connection } from './connection';
import { filteredRead } from './filtered-read';
import { pointOf } from './record';
import { batchesOf, READ_AHEAD, sourceOf } from './source';
import { fromLeader, persistently, SILENT_MS } from './stream-reader';

/** Our newest event, in a log that others write as well. */
export interface NewestEvent {
  head(): Promise<Head | undefined>;
  /** None of our events comes before this position. */
  begins(at: Position): void;
  start(): Position;
  /** An append of this process was answered. */
  grew(head: Head): void;
  /** The position of the last event of all, whoever wrote it. */
  end(): Promise<Position>;
}

/** A wider window scans other streams faster. */
export const SEARCH_WINDOW = 500;

/** The first page is short: mostly the last event is ours. */
const FIRST_PAGE = 8;
const MAX_PAGE_EVENTS = 4_096;
/** While the server skips what others wrote it sends nothing: a million events take about a second. */
const SEARCH_MS = 5_000;

/** Reads a number of events backwards, from just before a position or from the end. */
type ReadBack = (
  client: EventStoreDBClient,
  from: Position | undefined,
  count: number,
) => AsyncIterable<Batch>;

const nothing = async function* (): AsyncGenerator<Batch> {};

const everything: ReadBack = (client, from, maxCount) => {
  const fromPosition = from === undefined ? END : pointOf(from);
  const options = { direction: BACKWARDS, fromPosition, maxCount, ...fromLeader } as const;
  return batchesOf(sourceOf(client.readAll(options, READ_AHEAD)), SILENT_MS);
};

/** Only what might be ours, and the event with which our log begins. */
const mostlyOurs =
  (streams: Streams): ReadBack =>
  (client, before = '', maxCount) => {
    const prefixes = [...streams.beginnings(), streams.log()];
    return batchesOf(
      sourceOf(filteredRead(client, { before, maxCount, prefixes, window: SEARCH_WINDOW })),
      SEARCH_MS,
    );
  };

/** Reads a number of events, and no further than one that ends the search. */
const pagesBack =
  (connection: Connection, isEnd: (event: LoggedEvent) => boolean) =>
  async (read: ReadBack, from: Position | undefined, count: number): Promise<Batch> => {
    const found: LoggedEvent[] = [];
    const reading = persistently(connection, (client, last) => {
      const left = count - found.length;
      // The server never ends a read of no events.
      return left === 0 ? nothing() : read(client, last?.position ?? from, left);
    });
    for await (const batch of reading) {
      found.push(...batch);
      if (batch.some(isEnd)) break;
    }
    return found;
  };

export const newestEvent = (connection: Connection, streams: Streams): NewestEvent => {
  const isOurs = ({ stream }: LoggedEvent): boolean => streams.holds(stream);
  const filtered = mostlyOurs(streams);

  /** The head as last seen, and up to where the log was searched for it. */
  let known: Head | undefined;
  let searched: Position = '';
  let start: Position = '';
  const page = pagesBack(connection, (event) => isOurs(event) || event.position <= start);

  const grew = (head: Head): void => {
    if (known === undefined || head.position > known.position) known = head;
    if (head.position > searched) searched = head.position;
  };

  /** Does a page hold our newest event, or reach what was searched before? */
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
    // An append that is answered in the meantime may be beyond what the page shows.
    const floor = searched;
    const events = await page(everything, undefined, FIRST_PAGE);
    const [first, last] = [events[0]?.position ?? '', events.at(-1)?.position ?? ''];
    // A log that ends before what was searched is another one: a backup was put in its place.
    if (first < floor) {
      known = undefined;
      searched = start <= first ? start : '';
    }
    if (!isFoundIn(events) && events.length === FIRST_PAGE) {
      const readAll = (): Promise<void> => searchBefore(last, everything);
      // The first time, the server skips what others wrote, if it can and that does not take too long. Later, only what
      // came since is read, which is little.
      await (searched === start ? searchBefore(last, filtered).catch(readAll) : readAll());
    }
    if (first > searched) searched = first;
  };

  const searches = sharedRuns(search);
  return {
    head: () => searches.fresh().then(() => known),
    begins: (at) => void ([start, searched] = [at, at]),
    start: () => start,
    grew,
    end: async () => (await page(everything, undefined, 1))[0]?.position ?? '',
  };
};
