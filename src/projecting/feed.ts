import { pause } from '../clock';
import type { EventLog, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';
import { BATCH_EVENTS, bytesOf, fedBatch, sharedPages, type FedBatch, type FedEvent } from './pages';

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
const RETRY_MS = 500;
const BEGIN_MS = 2;

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

  const pages = sharedPages(log, streams);

  const isOver = (signal: AbortSignal): boolean => signal.aborted || ending.signal.aborted;

  /** Whoever is ahead of this feed (it may have read the log by itself) waits as well. */
  const news = (after: Position, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (reached > after || isOver(signal)) return resolve();
      const done = (): void => {
        waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      waiting.add(done);
      signal.addEventListener('abort', done);
    });

  /** For whoever is behind: up to where memory begins. */
  const fromLog = async function* (first: Position, signal: AbortSignal): AsyncGenerator<FedBatch> {
    const me = pages.reader(first);
    try {
      while (!isOver(signal) && me.at < (start ?? '')) {
        const batch = await pages.after(me);
        if (batch.length > 0) yield batch;
        else await pause(RETRY_MS, signal);
      }
    } finally {
      me.leave();
    }
  };

  const from = async function* (first: Position | undefined, signal: AbortSignal): AsyncGenerator<FedBatch> {
    let after = first ?? '';
    while (start === undefined && !isOver(signal)) await pause(BEGIN_MS, signal);
    while (!isOver(signal)) {
      for await (const batch of fromLog(after, signal)) {
        yield batch;
        after = batch.at(-1)?.logged.position ?? after;
      }
      // What is kept may have moved on since it was looked at.
      if (after < (start ?? '')) continue;
      const batch = fromMemory(after);
      if (batch.length > 0) yield batch;
      else await news(after, signal);
      after = batch.at(-1)?.logged.position ?? after;
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
