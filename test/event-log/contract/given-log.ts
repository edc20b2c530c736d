import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent } from '../../../src/event-log/event-log';
import type { Streams } from '../../../src/event-log/streams';
import { someEvents } from '../../support/events';

export interface OpenedLog {
  readonly log: EventLog;
  readonly streams: Streams;
  /** How many reads and subscriptions its server has open, if that can be known. */
  readonly openReads?: () => number;
  /** Closes it and opens the same log again, as a restarted program would. */
  reopen(): Promise<OpenedLog>;
  beside(): Promise<EventLog>;
}

/** A fresh log; with `copy`, one that was opened as the target of a copy. */
export type Open = (purpose?: 'copy') => Promise<OpenedLog>;

export interface GivenLog {
  readonly log: EventLog;
  readonly streams: Streams;
  openReads(): number;
  aStream(of?: Streams): string;
  reopen(): Promise<void>;
  openOne: Open;
  close(log: EventLog): Promise<void>;
}

export const givenLog = (open: Open): GivenLog => {
  const opened = new Set<EventLog>();
  let current: OpenedLog;

  const keep = (one: OpenedLog): OpenedLog => {
    opened.add(one.log);
    return one;
  };
  const close = async (log: EventLog): Promise<void> => {
    opened.delete(log);
    await log.close();
  };

  beforeEach(async () => {
    current = keep(await open());
  });
  afterEach(async () => {
    for (const log of opened) await close(log);
  });

  return {
    get log() {
      return current.log;
    },
    get streams() {
      return current.streams;
    },
    openReads: () => current.openReads?.() ?? 0,
    aStream: (of = current.streams) => of.tenant(randomUUID()),
    reopen: async () => {
      opened.delete(current.log);
      current = keep(await current.reopen());
    },
    openOne: async (purpose) => keep(await open(purpose)),
    close,
  };
};

export const grow = async (log: EventLog, stream: string, count: number, after = -1) => {
  const events = someEvents(count);
  for (let at = 0; at < count; at += 500) {
    const revision = after + at;
    await log.append(stream, events.slice(at, at + 500), revision < 0 ? 'no_stream' : revision);
  }
  return events;
};

export const following = (feed: (signal: AbortSignal) => AsyncIterable<readonly LoggedEvent[]>) => {
  const abort = new AbortController();
  const seen: LoggedEvent[] = [];
  const ended = (async () => {
    for await (const batch of feed(abort.signal)) seen.push(...batch);
  })();
  return {
    seen,
    ended,
    stop: async () => {
      abort.abort();
      await ended;
    },
  };
};

export const isIncreasing = (events: readonly LoggedEvent[]): boolean =>
  events.every(({ position }, i) => i === 0 || events[i - 1]!.position < position);
