import type { Head, LoggedEvent, Position } from '../event-log';
import type { Batch } from './source';

const RECENT_EVENTS = 4_096;
const RECENT_BYTES = 8_388_608;
const BATCH_EVENTS = 512;

/** The last events that came, without a gap, bounded by their number and their bytes. */
export interface RecentEvents {
  isBegun(): boolean;
  /** What is kept begins just after this event, or with the first one. */
  begin(at: Head | undefined): void;
  forget(): void;
  add(batch: Batch): void;
  /** Everything up to here is kept or was. */
  reached(): Position;
  /** The event there. */
  last(): Head | undefined;
  /** The next ones after a position, perhaps none yet; undefined when some of those are not kept any more. */
  after(position: Position): Batch | undefined;
}

const firstAfter = (events: Batch, position: Position): number => {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle] as LoggedEvent).position > position) high = middle;
    else low = middle + 1;
  }
  return low;
};

export const recentEvents = (): RecentEvents => {
  let events: LoggedEvent[] = [];
  let bytes = 0;
  let start: Position | undefined;
  let last: Head | undefined;

  /** In halves, so that an event is moved once at most. */
  const drop = (): void => {
    let first = 0;
    while (events.length - first > RECENT_EVENTS || bytes > RECENT_BYTES) {
      const { position, bytes: weight = 0 } = events[first] as LoggedEvent;
      bytes -= weight;
      start = position;
      first += 1;
    }
    events = events.slice(first);
  };

  return {
    isBegun: () => start !== undefined,
    begin: (at) => {
      start = at?.position ?? '';
      last = at;
    },
    forget: () => {
      events = [];
      bytes = 0;
      start = undefined;
      last = undefined;
    },
    add: (batch) => {
      events.push(...batch);
      for (const event of batch) bytes += event.bytes ?? 0;
      const newest = batch.at(-1);
      if (newest !== undefined) last = { position: newest.position, eventId: newest.id };
      if (events.length > 2 * RECENT_EVENTS || bytes > 2 * RECENT_BYTES) drop();
    },
    reached: () => last?.position ?? '',
    last: () => last,
    after: (position) => {
      if (start === undefined || position < start) return undefined;
      const first = firstAfter(events, position);
      return events.slice(first, first + BATCH_EVENTS);
    },
  };
};
