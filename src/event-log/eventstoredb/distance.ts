import type { EventLog, Position } from '../event-log';
import type { WholeLog } from './whole-log';

/** Positions are file offsets: the events between two are counted if there are few, and estimated otherwise. */
const MAX_COUNTED_EVENTS = 1_000;
const MAX_COUNTED_BYTES = 4_194_304;

const bytesBetween = (after: Position, upTo: Position): number => Number(BigInt(upTo) - BigInt(after));

interface Counted {
  /** The first positions in the range. */
  readonly positions: readonly Position[];
  /** There are no more in the range. */
  readonly isAll: boolean;
}

const countUpTo = async (log: WholeLog, after: Position, upTo: Position): Promise<Counted> => {
  const positions: Position[] = [];
  let bytes = 0;
  for await (const batch of log.upTo(after, upTo)) {
    for (const event of batch) bytes += event.bytes ?? 0;
    positions.push(...batch.map(({ position }) => position));
    if (positions.length >= MAX_COUNTED_EVENTS || bytes >= MAX_COUNTED_BYTES)
      return { positions, isAll: false };
  }
  return { positions, isAll: true };
};

export const distanceIn = (log: WholeLog): EventLog['distance'] => {
  /** Cached for the start of a long log, because progress is always measured from there. */
  let fromStart: Counted | undefined;

  return async (from, upTo) => {
    const after = from ?? log.start();
    if (upTo <= after) return 0;
    const known = after === log.start() ? fromStart : undefined;
    const counted = known ?? (await countUpTo(log, after, upTo));
    const { positions, isAll } = counted;
    if (after === log.start() && !isAll) fromStart = counted;
    const last = positions.at(-1);
    if (isAll || last === undefined || upTo <= last)
      return positions.filter((position) => position <= upTo).length;
    return Math.round((positions.length * bytesBetween(after, upTo)) / bytesBetween(after, last));
  };
};
