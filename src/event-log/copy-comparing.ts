import { fault, type Fault } from '../fault';
import type { Reading } from './copy-reading';
import type { Position } from './event-log';
import { differenceOf, type Own } from './own-events';

const nameOf = ({ event }: Own): string =>
  `${event.id} (${event.type}, revision ${event.revision} of ${event.stream})`;

export const noCopy = (why: string, here: string): Fault =>
  fault('copy_differs', `The target is no copy of this source: ${why} ${here}`);

/**
 * Reads both on from where they were found equal. Throws at the first difference; tells whether the target is complete
 * up to a position of the source.
 */
export const compare = async (
  source: Reading,
  target: Reading,
  upTo: Position,
  tell: (done: number) => void,
): Promise<'complete' | 'incomplete'> => {
  const theirs = target.events()[Symbol.asyncIterator]();
  const number = (): string => `event number ${source.count() + 1}`;
  try {
    for await (const ours of source.events(upTo)) {
      const next = await theirs.next();
      if (next.done === true) return 'incomplete';
      const difference = differenceOf(ours, next.value);
      if (difference !== undefined)
        throw noCopy(
          `${number()} is ${nameOf(next.value)}, where the source has ${nameOf(ours)}.`,
          `They differ in: ${difference}.`,
        );
      source.take(ours);
      target.take(next.value);
      tell(source.count());
    }
    const more = await theirs.next();
    if (more.done !== true)
      throw noCopy(`it also holds ${nameOf(more.value)} as ${number()},`, 'which the source has not there.');
    return 'complete';
  } finally {
    await theirs.return?.(undefined);
  }
};
