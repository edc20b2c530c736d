import { pause } from '../clock';
import { decode, type Decoded } from '../event-log/decode';
import type { EventLog, LoggedEvent, Position } from '../event-log/event-log';
import type { Streams } from '../event-log/streams';

/** An event with its meaning, worked out once for everyone who reads it. */
export interface FedEvent {
  readonly logged: LoggedEvent;
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

/** So many recent events are kept for those who are a little behind. */
const RECENT_EVENTS = 4_096;

export const fedBatch = (batch: readonly LoggedEvent[], streams: Streams): FedBatch =>
  batch.map((logged) => ({ logged, decoded: decode(logged, streams) }));

const RETRY_MS = 500;

export const liveFeed = async (
  log: EventLog,
  streams: Streams,
  onTrouble: (error: unknown) => void,
): Promise<Feed> => {
  const ending = new AbortController();
  const recent: FedBatch[] = [];
  const waiting = new Set<() => void>();
  let kept = 0;
  /** What is kept begins just after this position and reaches up to `reached`. */
  let start = (await log.head())?.position;
  let reached = start;

  const keep = (batch: FedBatch): void => {
    recent.push(batch);
    kept += batch.length;
    reached = batch.at(-1)?.logged.position;
    while (kept > RECENT_EVENTS && recent.length > 1) {
      const oldest = recent.shift() ?? [];
      kept -= oldest.length;
      start = oldest.at(-1)?.logged.position;
    }
    for (const wake of waiting) wake();
  };

  const pump = async (): Promise<void> => {
    while (!ending.signal.aborted)
      try {
        for await (const batch of log.readAll({ after: reached, follow: true, signal: ending.signal }))
          keep(fedBatch(batch, streams));
      } catch (error) {
        onTrouble(error);
        await pause(RETRY_MS, ending.signal);
      }
  };
  const pumping = pump();

  const isKept = (after: Position | undefined): boolean =>
    start === undefined || (after !== undefined && after >= start);

  const fromMemory = (after: Position | undefined): FedBatch => {
    for (const batch of recent) {
      const last = batch.at(-1)?.logged.position ?? '';
      if (after !== undefined && last <= after) continue;
      return after === undefined ? batch : batch.filter((event) => event.logged.position > after);
    }
    return [];
  };

  /** Who has read what another process appended may even be ahead of this feed. */
  const isBehind = (after: Position | undefined): boolean => (reached ?? '') > (after ?? '');

  const news = (after: Position | undefined, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (isBehind(after) || signal.aborted || ending.signal.aborted) return resolve();
      const done = (): void => {
        waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      waiting.add(done);
      signal.addEventListener('abort', done);
    });

  const from = async function* (first: Position | undefined, signal: AbortSignal): AsyncGenerator<FedBatch> {
    let after = first;
    const ended = (): boolean => signal.aborted || ending.signal.aborted;
    while (!ended()) {
      if (isKept(after)) {
        const batch = fromMemory(after);
        if (batch.length > 0) yield batch;
        else await news(after, signal);
        after = batch.at(-1)?.logged.position ?? after;
      } else
        for await (const batch of log.readAll({ after, signal })) {
          yield fedBatch(batch, streams);
          after = batch.at(-1)?.position ?? after;
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
