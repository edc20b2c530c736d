import type { Batch, LoggedEvent, Position } from './event-log';

/** The events at or before a position; stops reading after it. Undefined: all events. */
export async function* upTo(
  batches: AsyncIterable<Batch>,
  last: Position | undefined,
): AsyncGenerator<Batch> {
  for await (const batch of batches) {
    const due = last === undefined ? batch : batch.filter(({ position }) => position <= last);
    if (due.length > 0) yield due;
    if (due.length < batch.length) return;
  }
}

export const firstOf = async (batches: AsyncIterable<Batch>): Promise<LoggedEvent | undefined> => {
  for await (const [event] of batches) return event;
  return undefined;
};
