import { settleAll } from '../async/concurrency';
import type { StreamKind } from '../domain/events';
import { upTo, type Batch, type EventLog } from './event-log';
import type { Streams } from './streams';

/** The reading of a stream, and the next of its events. Empty: there are no more. */
interface Reading {
  readonly batches: AsyncGenerator<Batch>;
  next: Batch;
}

const readOn = async (reading: Reading): Promise<void> => {
  if (reading.next.length > 0) return;
  const { value, done } = await reading.batches.next();
  reading.next = done === true ? [] : value;
};

/** What of all has been read up to the nearest of their ends is complete. */
const merged = async function* (readings: readonly Reading[]): AsyncGenerator<Batch> {
  for (;;) {
    await settleAll(readings.map(readOn));
    const [end] = readings.flatMap(({ next }) => next.at(-1)?.position ?? []).toSorted();
    if (end === undefined) return;
    const due = readings.flatMap(({ next }) => next.filter(({ position }) => position <= end));
    for (const reading of readings) reading.next = reading.next.filter(({ position }) => position > end);
    yield due.toSorted((a, b) => (a.position < b.position ? -1 : 1));
  }
};

/**
 * Merges the streams of a tenant by position, up to one that is already in the log: so both are complete up to there, in
 * whatever order they are read, and no event is missed that precedes one of the other stream.
 */
export const tenantReader = (
  { head, readStream, revisionAt }: Pick<EventLog, 'head' | 'readStream' | 'revisionAt'>,
  streams: Streams,
): EventLog['readTenant'] =>
  async function* (tenantId, { after = '', upTo: end, signal } = {}) {
    const last = end ?? (await head())?.position;
    if (last === undefined) return;
    const revisionOf = (kind: StreamKind): Promise<number> | number => {
      if (typeof after === 'object') return after[kind];
      return after === '' ? -1 : revisionAt(streams[kind](tenantId), after);
    };
    const open = async (kind: StreamKind): Promise<Reading> => {
      const batches = readStream(streams[kind](tenantId), await revisionOf(kind));
      return { batches: upTo(batches, last), next: [] };
    };
    const readings = await settleAll([open('tenant'), open('activity')]);
    try {
      for await (const batch of merged(readings)) {
        if (signal?.aborted === true) return;
        yield batch;
      }
    } finally {
      for (const { batches } of readings) await batches.return(undefined);
    }
  };
