import { monotonicMs } from '../clock';
import { decode, type Decoded } from '../event-log/codec';
import type { EventLog, LoggedEvent, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';

/** An event with its meaning, worked out at first use and once for everyone who reads it. */
export interface FedEvent {
  readonly logged: LoggedEvent;
  /** Whose stream it lies in; undefined when that is none of ours. */
  readonly owner: ReturnType<Streams['parse']>;
  readonly decoded: Decoded;
}

export type FedBatch = readonly FedEvent[];

/** A class, since there are so many of them: objects that each bring a getter of their own cost far more. */
class Fed implements FedEvent {
  #decoded: Decoded | undefined;

  constructor(
    readonly logged: LoggedEvent,
    readonly owner: FedEvent['owner'],
    private readonly streams: Streams,
  ) {}

  get decoded(): Decoded {
    return (this.#decoded ??= decode(this.logged, this.streams));
  }
}

export const fedBatch = (batch: readonly LoggedEvent[], streams: Streams): FedBatch =>
  batch.map((logged) => new Fed(logged, streams.parse(logged.stream), streams));

export const BATCH_EVENTS = 512;
const BATCH_BYTES = 4_194_304;

/** Where an adapter does not say. */
const USUAL_BYTES = 500;
export const bytesOf = ({ bytes = USUAL_BYTES }: LoggedEvent): number => bytes;

interface Page {
  readonly batch: FedBatch;
  /** It was cut: there may be more. */
  readonly full: boolean;
}

/** The empty position is before everything. */
const readPage = async (log: EventLog, streams: Streams, after: Position): Promise<Page> => {
  const events: LoggedEvent[] = [];
  let bytes = 0;
  for await (const batch of log.readAll(after === '' ? {} : { after })) {
    events.push(...batch);
    for (const event of batch) bytes += bytesOf(event);
    if (events.length >= BATCH_EVENTS || bytes >= BATCH_BYTES)
      return { batch: fedBatch(events, streams), full: true };
  }
  return { batch: fedBatch(events, streams), full: false };
};

/**
 * The log in pages, read and understood once for several who go through it together. Whoever is ahead waits a little
 * for the others, so that their pages are still there; but nobody waits for one that is stuck.
 */
export interface Pages {
  /** The page after a position; an empty one at the end. */
  after(reader: PageReader): Promise<FedBatch>;
  /** Somebody begins to read from just after a position. */
  reader(after: Position): PageReader;
  /** The events just after a position, up to another one and not beyond. */
  upTo(last: Position): (first: Position | undefined) => AsyncIterable<FedBatch>;
}

export interface PageReader {
  at: Position;
  /** It reads no more: nobody waits for it. */
  leave(): void;
}

const MOST_PAGES = 2;
const LONGEST_WAIT_MS = 100;

export const sharedPages = (log: EventLog, streams: Streams): Pages => {
  const pages = new Map<Position, Promise<Page>>();
  const readers = new Set<PageReader>();
  const waiting = new Set<() => void>();

  const slowest = (): Position => {
    let least: Position | undefined;
    for (const { at } of readers) if (least === undefined || at < least) least = at;
    return least ?? '';
  };

  /** Pages that everybody has passed are not needed any more. */
  const forget = (): void => {
    const least = slowest();
    for (const after of pages.keys()) if (readers.size === 0 || after < least) pages.delete(after);
    for (const wake of waiting) wake();
  };

  const movement = (): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, LONGEST_WAIT_MS);
      waiting.add(done);
    });

  const mustWait = (at: Position): boolean => !pages.has(at) && pages.size >= MOST_PAGES && at !== slowest();

  /** A page that is not full was the end of the log a moment ago: it is not kept. */
  const read = (at: Position): Promise<Page> => {
    const known = pages.get(at);
    if (known !== undefined) return known;
    const page = readPage(log, streams, at);
    // Whoever has run away from one that is stuck reads for itself: pages are not kept without end.
    if (pages.size >= MOST_PAGES && at !== slowest()) return page;
    pages.set(at, page);
    const drop = (): void => void (pages.get(at) === page && pages.delete(at));
    page.then(({ full }) => full || drop(), drop);
    return page;
  };

  const reader = (first: Position): PageReader => {
    const made: PageReader = {
      at: first,
      leave: () => {
        readers.delete(made);
        forget();
      },
    };
    readers.add(made);
    return made;
  };

  const after = async (one: PageReader): Promise<FedBatch> => {
    const { at } = one;
    const patience = monotonicMs() + LONGEST_WAIT_MS;
    while (mustWait(at) && monotonicMs() < patience) await movement();
    const { batch } = await read(at);
    one.at = batch.at(-1)?.logged.position ?? at;
    forget();
    return batch;
  };

  return {
    reader,
    after,
    upTo: (last) =>
      async function* (first: Position | undefined): AsyncGenerator<FedBatch> {
        const me = reader(first ?? '');
        try {
          while (me.at < last) {
            const batch = await after(me);
            const due = me.at <= last ? batch : batch.filter((event) => event.logged.position <= last);
            if (due.length === 0) return;
            yield due;
          }
        } finally {
          me.leave();
        }
      },
  };
};
