import type { Position } from '../event-log';
import type { WholeLog } from './whole-log';

/** Positions are places in a file: how many events lie between two of them is counted near by and estimated far off. */
const COUNTED_EVENTS = 1_000;
const COUNTED_BYTES = 4_194_304;
const MOST_KEPT = 16;

interface Counted {
  /** The positions of the first events after a place, in order. */
  readonly positions: readonly Position[];
  /** It was not cut: there was no more. */
  readonly isAll: boolean;
}

const bytesBetween = (after: Position, upTo: Position): number => Number(BigInt(upTo) - BigInt(after));

export const distances = (log: WholeLog) => {
  const counted = new Map<Position, Counted>();

  const count = async (after: Position, upTo: Position): Promise<Counted> => {
    const positions: Position[] = [];
    let bytes = 0;
    for await (const batch of log.upTo(after, upTo)) {
      for (const event of batch) {
        positions.push(event.position);
        bytes += event.bytes ?? 0;
      }
      if (positions.length >= COUNTED_EVENTS || bytes >= COUNTED_BYTES) return { positions, isAll: false };
    }
    return { positions, isAll: true };
  };

  const keep = (after: Position, found: Counted): void => {
    counted.delete(after);
    counted.set(after, found);
    for (const oldest of counted.keys()) if (counted.size > MOST_KEPT) counted.delete(oldest);
  };

  return async (from: Position | undefined, upTo: Position): Promise<number> => {
    const after = from ?? log.start();
    if (upTo <= after) return 0;
    let known = counted.get(after);
    if (known === undefined || (known.isAll && upTo > (known.positions.at(-1) ?? ''))) {
      known = await count(after, upTo);
      keep(after, known);
    }
    const { positions, isAll } = known;
    const last = positions.at(-1);
    if (isAll || last === undefined || upTo <= last)
      return positions.filter((position) => position <= upTo).length;
    return Math.round((positions.length * bytesBetween(after, upTo)) / bytesBetween(after, last));
  };
};
