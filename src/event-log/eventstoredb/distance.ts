import type { EventLog, Position } from '../event-log';
import type { WholeLog } from './whole-log';

/** Positions are offsets in a file: the events between two of them are counted if they are few, and estimated otherwise. */
const COUNTED_EVENTS = 1_000;
const COUNTED_BYTES = 4_194_304;

const bytesBetween = (after: Position, upTo: Position): number => Number(BigInt(upTo) - BigInt(after));

interface Counted {
  /** The first ones after a position. */
  readonly positions: readonly Position[];
  /** There were no more in the range. */
  readonly isAll: boolean;
}

const countUpTo = async (log: WholeLog, after: Position, upTo: Position): Promise<Counted> => {
  const positions: Position[] = [];
  let bytes = 0;
  for await (const batch of log.upTo(after, upTo)) {
    for (const event of batch) bytes += event.bytes ?? 0;
    positions.push(...batch.map(({ position }) => position));
    if (positions.length >= COUNTED_EVENTS || bytes >= COUNTED_BYTES) return { positions, isAll: false };
  }
  return { positions, isAll: true };
};

export const distanceIn = (log: WholeLog): EventLog['distance'] => {
  /** The beginning of a long log: progress is measured from there again and again. */
  let beginning: Counted | undefined;

  return async (from, upTo) => {
    const after = from ?? log.start();
    if (upTo <= after) return 0;
    const known = after === log.start() ? beginning : undefined;
    const counted = known ?? (await countUpTo(log, after, upTo));
    const { positions, isAll } = counted;
    if (after === log.start() && !isAll) beginning = counted;
    const last = positions.at(-1);
    if (isAll || last === undefined || upTo <= last)
      return positions.filter((position) => position <= upTo).length;
    return Math.round((positions.length * bytesBetween(after, upTo)) / bytesBetween(after, last));
  };
};
