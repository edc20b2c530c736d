import { pause } from '../clock';
import { decode, type Decoded } from '../event-log/decode';
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

/**
 * The one live subscription of this process. Whoever keeps up is served from memory; whoever is behind reads the log by
 * itself until it has caught up.
 */
export interface Feed {
  /** Never ends until the signal is aborted or the feed is closed. */
  from(after: Position | undefined, signal: AbortSignal): AsyncIterable<FedBatch>;
  close(): Promise<void>;
}

/** So many recent events are kept for those who are a little behind; twice as many until it is worth dropping some. */
const RECENT_EVENTS = 4_096;
const RECENT_BYTES = 8_388_608;
const BATCH_EVENTS = 2_048;
const BATCH_BYTES = 4_194_304;

/** Where an adapter does not say. */
const USUAL_BYTES = 500;
const bytesOf = ({ bytes = USUAL_BYTES }: LoggedEvent): number => bytes;
const RETRY_MS = 500;
const BEGIN_MS = 2;

const fed = (logged: LoggedEvent, streams: Streams): FedEvent => {
  let meaning: Decoded | undefined;
  return {
    logged,
    owner: streams.parse(logged.stream),
    get decoded() {
      return (meaning ??= decode(logged, streams));
    },
  };
};

export const fedBatch = (batch: readonly LoggedEvent[], streams: Streams): FedBatch =>
  batch.map((logged) => fed(logged, streams));

/** The index of the first event after a position, by halving. */
const firstAfter = (events: FedBatch, after: Position): number => {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle] as FedEvent).logged.position > after) high = middle;
    else low = middle + 1;
  }
  return low;
};

const MOST_PAGES = 8;

/** The events just after a position, up to another one and not beyond. */
export const eventsUpTo = (log: EventLog, streams: Streams, last: Position) =>
  async function* (first: Position | undefined): AsyncGenerator<FedBatch> {
    let after = first ?? '';
    while (after < last) {
      const page = await readPage(log, streams, after);
      const batch = page.filter((event) => event.logged.position <= last);
      if (batch.length === 0) return;
      yield batch;
      after = batch.at(-1)?.logged.position ?? last;
    }
  };

const readPage = async (log: EventLog, streams: Streams, after: Position): Promise<FedBatch> => {
  const events: LoggedEvent[] = [];
  let bytes = 0;
  for await (const batch of log.readAll(after === '' ? {} : { after })) {
    events.push(...batch);
    for (const event of batch) bytes += bytesOf(event);
    if (events.length >= BATCH_EVENTS || bytes >= BATCH_BYTES) break;
  }
  return fedBatch(events, streams);
};

export const liveFeed = (log: EventLog, streams: Streams, onTrouble: (error: unknown) => void): Feed => {
  const ending = new AbortController();
  const waiting = new Set<() => void>();
  let recent: FedEvent[] = [];
  let kept = 0;
  /** What is kept begins just after this position and reaches up to `reached`. The empty text is before everything. */
  let start: Position | undefined;
  let reached: Position = '';

  const begin = async (): Promise<void> => {
    start = (await log.head())?.position ?? '';
    reached = start;
  };

  const drop = (): void => {
    let first = 0;
    while (recent.length - first > RECENT_EVENTS || kept > RECENT_BYTES) {
      const { logged } = recent[first] as FedEvent;
      kept -= bytesOf(logged);
      start = logged.position;
      first += 1;
    }
    recent = recent.slice(first);
  };

  const keep = (batch: FedBatch): void => {
    recent.push(...batch);
    for (const { logged } of batch) kept += bytesOf(logged);
    reached = batch.at(-1)?.logged.position ?? reached;
    if (recent.length > 2 * RECENT_EVENTS || kept > 2 * RECENT_BYTES) drop();
    for (const wake of waiting) wake();
  };

  const pump = async (): Promise<void> => {
    while (!ending.signal.aborted)
      try {
        if (start === undefined) await begin();
        const after = reached === '' ? undefined : reached;
        for await (const batch of log.readAll({ after, follow: true, signal: ending.signal }))
          keep(fedBatch(batch, streams));
      } catch (error) {
        onTrouble(error);
        await pause(RETRY_MS, ending.signal);
      }
  };
  const pumping = pump();

  const fromMemory = (after: Position): FedBatch => {
    const first = firstAfter(recent, after);
    return recent.slice(first, first + BATCH_EVENTS);
  };

  /** Those who are behind are often behind together: a page is read and understood once for all of them. */
  const pages = new Map<Position, Promise<FedBatch>>();
  const fromLog = (after: Position): Promise<FedBatch> => {
    const known = pages.get(after);
    if (known !== undefined) return known;
    const page = readPage(log, streams, after);
    pages.set(after, page);
    page.catch(() => pages.delete(after));
    for (const oldest of pages.keys()) if (pages.size > MOST_PAGES) pages.delete(oldest);
    return page;
  };

  /** Whoever is ahead of this feed (it may have read the log by itself) waits as well. */
  const news = (after: Position, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (reached > after || signal.aborted || ending.signal.aborted) return resolve();
      const done = (): void => {
        waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      waiting.add(done);
      signal.addEventListener('abort', done);
    });

  const from = async function* (first: Position | undefined, signal: AbortSignal): AsyncGenerator<FedBatch> {
    let after = first ?? '';
    const ended = (): boolean => signal.aborted || ending.signal.aborted;
    while (start === undefined && !ended()) await pause(BEGIN_MS, signal);
    while (!ended()) {
      if (after >= (start ?? '')) {
        pages.clear();
        const batch = fromMemory(after);
        if (batch.length > 0) yield batch;
        else await news(after, signal);
        after = batch.at(-1)?.logged.position ?? after;
      } else {
        const batch = await fromLog(after);
        if (batch.length > 0) yield batch;
        else await pause(RETRY_MS, signal);
        after = batch.at(-1)?.logged.position ?? after;
      }
    }
  };

  return {
    from,
    close: async () => {
      ending.abort();
      for (const wake of waiting) wake();
      await pumping;
    },
  };
};
