import type { Batch, LoggedEvent, Position } from '../event-log/event-log';

/** The next events after a position, at most this many. None: the end of the log. */
export type ReadAfter = (after: Position | undefined, max: number) => Promise<readonly LoggedEvent[]>;

/** A piece of the log ends here, whatever the number of its events. */
const MAX_BYTES = 4_194_304;

/** Reads a log in pieces, each with a read of its own. */
export const logReader =
  (open: (after: Position | undefined) => AsyncIterable<Batch>): ReadAfter =>
  async (after, max) => {
    const events: LoggedEvent[] = [];
    let bytes = 0;
    for await (const batch of open(after))
      for (const event of batch) {
        events.push(event);
        bytes += event.bytes ?? 0;
        if (events.length >= max || bytes >= MAX_BYTES) return events;
      }
    return events;
  };
