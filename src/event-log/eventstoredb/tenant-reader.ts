import { settleAll } from '../../async/concurrency';
import type { StreamKind } from '../../domain/events';
import {
  BATCH_BYTES,
  BATCH_EVENTS,
  upTo,
  type Batch,
  type LoggedEvent,
  type Position,
  type TenantRevisions,
} from '../event-log';
import type { StreamReader } from './stream-reader';

const oneByOne = async function* (batches: AsyncIterable<Batch>): AsyncGenerator<LoggedEvent> {
  for await (const batch of batches) for (const event of batch) yield event;
};

type Heads = { readonly reading: AsyncGenerator<LoggedEvent>; next: LoggedEvent | undefined }[];

const merged = async function* (heads: Heads): AsyncGenerator<LoggedEvent> {
  for (;;) {
    const [first] = heads
      .filter(({ next }) => next !== undefined)
      .toSorted((a, b) => ((a.next?.position ?? '') < (b.next?.position ?? '') ? -1 : 1));
    if (first?.next === undefined) return;
    yield first.next;
    first.next = (await first.reading.next()).value as LoggedEvent | undefined;
  }
};

const inBatches = async function* (events: AsyncIterable<LoggedEvent>): AsyncGenerator<Batch> {
  let batch: LoggedEvent[] = [];
  let bytes: number = 0;
  for await (const event of events) {
    batch.push(event);
    bytes += event.bytes ?? 0;
    if (batch.length < BATCH_EVENTS && bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
};

/**
 * Merges several streams by position, after one position and up to another. The latter is already in the log, so all the
 * streams are complete up to there, in whatever order they are read.
 */
export const mergedUpTo = async function* (
  reader: StreamReader,
  streams: Readonly<Record<StreamKind, string>>,
  after: Position | TenantRevisions,
  last: Position,
): AsyncGenerator<Batch> {
  const revisionOf = (kind: StreamKind): Promise<number> | number => {
    if (typeof after === 'object') return after[kind];
    return after === '' ? -1 : reader.revisionAt(streams[kind], after);
  };
  const open = async (kind: StreamKind) => {
    const stream = streams[kind];
    const revision = await revisionOf(kind);
    const reading = oneByOne(upTo(reader.forwards(stream, revision), last));
    return { reading, next: (await reading.next()).value as LoggedEvent | undefined };
  };
  const heads: Heads = [];
  try {
    heads.push(...(await settleAll([open('tenant'), open('activity')])));
    yield* inBatches(merged(heads));
  } finally {
    for (const { reading } of heads) await reading.return(undefined);
  }
};
