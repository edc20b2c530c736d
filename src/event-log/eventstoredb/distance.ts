import type { EventLog, Position } from '../event-log';
import type { WholeLog } from './whole-log';

/** Positions are file offsets: the events between two are counted if there are few, and estimated by those otherwise. */
const MAX_COUNTED_EVENTS = 1_000;

const bytesBetween = (after: Position, upTo: Position): number => Number(BigInt(upTo) - BigInt(after));

export const distanceIn =
  (log: WholeLog): EventLog['distance'] =>
  async (from, upTo) => {
    const after = from ?? log.start();
    let [count, last] = [0, after];
    if (after < upTo)
      for await (const batch of log.upTo(after, upTo)) {
        count += batch.length;
        last = batch.at(-1)?.position ?? last;
        if (count >= MAX_COUNTED_EVENTS)
          return Math.round((count * bytesBetween(after, upTo)) / bytesBetween(after, last));
      }
    return count;
  };
