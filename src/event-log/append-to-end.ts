import { codeOf, moreOf } from '../fault';
import type { Appended, EventLog, Expected, NewEvent } from './event-log';

/** Appends to the end of a stream, wherever that is: on a conflict, retries at the actual end. */
export const appendToEnd = async (
  log: Pick<EventLog, 'append'>,
  stream: string,
  events: readonly NewEvent[],
  withinMs?: number,
): Promise<Appended> => {
  for (let end: Expected = 'no_stream'; ;)
    try {
      return await log.append(stream, events, end, withinMs);
    } catch (error) {
      if (codeOf(error) !== 'stream_changed') throw error;
      const actual = Number(moreOf(error)['actual']);
      end = actual < 0 ? 'no_stream' : actual;
    }
};
