import { pause, yieldToEventLoop } from '../../async/clock';
import type { StreamKind } from '../../domain/events';
import type { Database } from '../../sqlite/database';
import { TIMES } from '../../times';
import {
  BATCH_BYTES,
  BATCH_EVENTS,
  revisionBefore,
  upTo,
  type Batch,
  type LoggedEvent,
  type Position,
  type ReadFrom,
  type ReadTenantFrom,
} from '../event-log';
import { unavailable } from './log-file';

/** The events of a tenant are read on the HTTP thread, which no page may block for long. */
const PAGE_EVENTS = 64;

interface Page {
  readonly batch: Batch;
  /** A limit was reached, so there may be more. */
  readonly full: boolean;
}

/** Rows as arrays cost half as much as objects. */
type Row = readonly [
  position: number,
  stream: string,
  revision: number,
  id: string,
  type: string,
  data: string,
  metadata: string,
  recordedAt: number,
];

/** Padded, so that positions sort as text. */
export const positionOf = (rowId: number): Position => String(rowId).padStart(16, '0');

export const rowIdOf = (position: Position | undefined): number =>
  position === undefined ? 0 : Number(position);

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return Buffer.from(text);
  }
};

const isoOf = (time: number): string => new Date(Number.isSafeInteger(time) ? time : 0).toISOString();

const eventOf = ([position, stream, revision, id, type, data, metadata, recordedAt]: Row) => ({
  id,
  type,
  data: parsed(data),
  metadata: parsed(metadata),
  stream,
  revision,
  position: positionOf(position),
  recordedAt: isoOf(recordedAt),
  bytes: Buffer.byteLength(data) + Buffer.byteLength(metadata),
});

/** Takes rows until the batch is full. Leaves no statement open. */
const takeBatch = (rows: Iterable<unknown>, maxEvents = BATCH_EVENTS): Page => {
  const batch: LoggedEvent[] = [];
  let bytes = 0;
  for (const row of rows as Iterable<Row>) {
    const event = eventOf(row);
    batch.push(event);
    bytes += event.bytes;
    if (batch.length >= maxEvents || bytes >= BATCH_BYTES) return { batch, full: true };
  }
  return { batch, full: false };
};

/** Turns errors of the driver into faults. */
export const readOrFault = <T>(next: () => T): T => {
  try {
    return next();
  } catch (error) {
    throw unavailable('The event log cannot be read', error);
  }
};

/** How a follower learns of events. */
interface Changes {
  /** Another one after each change; undefined, which counts as a change, if the file cannot be read. */
  readonly token: () => number | undefined;
  /** Aborted when the log is closed. The file is not read after that. */
  readonly closing: AbortSignal;
}

/**
 * Reads pages with `next` until one is not full; with `follow` it then waits for changes, which it notices within
 * TIMES.followMs. The token is read before the page, so that events arriving in between are read too. It yields to the
 * event loop between pages, so that a long read does not block HTTP. Closing the log ends a follower, but fails a bounded
 * read, whose result would be incomplete.
 */
const pages = async function* ({ token, closing }: Changes, next: () => Page, { follow, signal }: ReadFrom) {
  const ending = follow ? AbortSignal.any(signal === undefined ? [closing] : [closing, signal]) : signal;
  const isEnded = (): boolean => ending?.aborted === true;
  while (!isEnded()) {
    const seen = follow ? token() : undefined;
    const { batch, full } = readOrFault(next);
    if (batch.length > 0) yield batch;
    if (full) await yieldToEventLoop();
    else if (!follow) return;
    else
      for (let now = seen; now !== undefined && now === seen && !isEnded(); now = token())
        await pause(TIMES.followMs, ending);
  }
};

/**
 * Finds the last revision of a stream at or before a row by binary search, since both grow together. A damaged log may
 * lack revisions, which the reader of its events notices.
 */
const revisionFinder = (db: Database) => {
  const place = 'SELECT revision, position FROM events WHERE stream = ?';
  const fromRevision = db.prepare(`${place} AND revision >= ? ORDER BY revision LIMIT 1`);
  const last = db.prepare(`${place} ORDER BY revision DESC LIMIT 1`);
  const found = (row: unknown) => {
    const { revision, position } = (row ?? {}) as Readonly<Record<string, number | undefined>>;
    return revision === undefined ? undefined : { revision, position: positionOf(position ?? 0) };
  };
  return async (stream: string, position: Position): Promise<number> => {
    if (position === '') return -1;
    const end = readOrFault(() => found(last.get(stream)));
    return revisionBefore(position, end, (from) => readOrFault(() => found(fromRevision.get(stream, from))));
  };
};

const COLUMNS = 'position, stream, revision, id, type, data, metadata, recorded_at';

export const eventReader = (db: Database, changes: Changes) => {
  const rows = (where: string) => {
    const statement = db.prepare(`SELECT ${COLUMNS} FROM events WHERE ${where}`);
    statement.setReturnArrays(true);
    return statement;
  };
  const ofStream = rows('stream = ? AND revision > ? ORDER BY revision');
  const ofAll = rows('position > ? ORDER BY position');
  const nextPositions = `SELECT position FROM (SELECT position FROM events WHERE stream = ? AND revision > ?
    ORDER BY revision LIMIT ${PAGE_EVENTS})`;
  const ofTwoStreams = rows(`position IN (${nextPositions} UNION ALL ${nextPositions}) ORDER BY position`);
  const revisionAt = revisionFinder(db);

  return {
    stream: (stream: string, after: number): AsyncIterable<Batch> => {
      let from = after;
      const next = (): Page => {
        const page = takeBatch(ofStream.iterate(stream, from), PAGE_EVENTS);
        from = page.batch.at(-1)?.revision ?? from;
        return page;
      };
      return pages(changes, next, {});
    },

    all: (from: ReadFrom): AsyncIterable<Batch> => {
      let after = rowIdOf(from.after);
      const next = (): Page => {
        const page = takeBatch(ofAll.iterate(after));
        after = page.batch.length === 0 ? after : rowIdOf(page.batch.at(-1)?.position);
        return page;
      };
      return pages(changes, next, from);
    },

    revisionAt,

    /** In one statement, so as of one moment: otherwise an event could be missed that precedes one of the other stream. */
    merged: async function* (
      streams: Readonly<Record<StreamKind, string>>,
      { after, upTo: last, max = Infinity, signal }: ReadTenantFrom,
    ): AsyncGenerator<Batch> {
      const reached = new Map<string, number>();
      for (const kind of ['tenant', 'activity'] as const) {
        const revision =
          typeof after === 'object' ? after[kind] : await revisionAt(streams[kind], after ?? '');
        reached.set(streams[kind], revision);
      }
      const next = (): Page => {
        const page = takeBatch(ofTwoStreams.iterate(...[...reached].flat()), Math.min(max, PAGE_EVENTS));
        for (const event of page.batch) reached.set(event.stream, event.revision);
        return page;
      };
      const found = pages(changes, next, { signal });
      yield* last === undefined ? found : upTo(found, last);
    },
  };
};
