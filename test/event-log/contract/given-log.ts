import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent, NewEvent } from '../../../src/event-log/event-log';
import type { Streams } from '../../../src/event-log/streams';
import { someEvents } from '../../support/events';

/** What an adapter provides: how to open a fresh log of its kind. */
export interface OpenedLog {
  readonly log: EventLog;
  /** The names of its streams: several logs may share a server, each with its own prefix. */
  readonly streams: Streams;
  /** How many reads and subscriptions its server has open, if that can be known. */
  readonly openReads?: () => number;
  /** Closes it and opens the same log again, as a restarted program would. */
  reopen(): Promise<OpenedLog>;
  /** The same log, opened by another process at the same time. */
  beside(): Promise<EventLog>;
}

/** A fresh log; with `copy`, one that was opened as the target of a copy. */
export type Open = (purpose?: 'copy') => Promise<OpenedLog>;

/** A fresh log for each test. */
export interface GivenLog {
  readonly log: EventLog;
  readonly streams: Streams;
  openReads(): number;
  /** The name of a stream that does not exist yet. */
  aStream(of?: Streams): string;
  /** The same log, reopened. */
  reopen(): Promise<void>;
  /** Another log. */
  openOne: Open;
  close(log: EventLog): Promise<void>;
}

/** Opens a log before each test of the surrounding block, and afterwards closes all that were opened. */
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

/** Appends one event after another until there are this many, and returns all of them. */
export const grow = async (
  log: EventLog,
  stream: string,
  count: number,
  after = -1,
): Promise<readonly NewEvent[]> => {
  const events = someEvents(count);
  for (let at = 0; at < count; at += 500) {
    const revision = after + at;
    await log.append(stream, events.slice(at, at + 500), revision < 0 ? 'no_stream' : revision);
  }
  return events;
};

/** Collects a feed into a list until it is stopped. */
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
