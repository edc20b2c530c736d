import { letOthersGo } from '../../clock';
import type { Database } from '../../sqlite/database';
import type { Tail } from '../../sqlite/tail';
import { messageOf } from '../../fault';
import { logFault, type LoggedEvent, type ReadFrom } from '../event-log';
import { columnsOf, eventOf, pageOf, pageText, rowIdOf, type Row } from './row';
import { hasStoredAt } from './stored-at';

/** A batch ends at whichever comes first. */
const BATCH_EVENTS = 512;
const BATCH_BYTES = 1_048_576;

type Batch = readonly LoggedEvent[];

interface Page {
  readonly batch: Batch;
  /** It was cut: there may be more. */
  readonly full: boolean;
}

/** The rows of the next page, which may be too large for one. */
interface Span {
  readonly last: number;
  readonly events: number;
  readonly bytes: number;
  /** How many of them are texts, as all should be. */
  readonly texts: number;
}

/** Takes rows until the batch is full. No statement stays open when it returns. */
const takeBatch = (rows: Iterable<unknown>): Page => {
  const batch: LoggedEvent[] = [];
  let bytes = 0;
  for (const row of rows as Iterable<Row>) {
    const event = eventOf(row);
    batch.push(event);
    bytes += event.bytes;
    if (batch.length >= BATCH_EVENTS || bytes >= BATCH_BYTES) return { batch, full: true };
  }
  return { batch, full: false };
};

/** What can be given of several streams: everything up to the last event of the shortest page that was cut. */
const merge = (pages: readonly Page[]): Page => {
  const limit = pages
    .filter((page) => page.full)
    .map((page) => page.batch.at(-1)?.position ?? '')
    .toSorted()[0];
  const batch = pages
    .flatMap((page) => page.batch)
    .filter((event) => limit === undefined || event.position <= limit)
    .toSorted((a, b) => (a.position < b.position ? -1 : 1));
  return { batch, full: limit !== undefined };
};

/** What the driver throws becomes a fault that callers know. */
const read = (next: () => Page): Page => {
  try {
    return next();
  } catch (error) {
    throw logFault('log_unavailable', `The event log cannot be read: ${messageOf(error)}`);
  }
};

export const eventReader = (db: Database, news: Tail) => {
  const storedAt = hasStoredAt(db) ? 'stored_at' : 'NULL';
  const rows = (where: string) => {
    const statement = db.prepare(`SELECT ${columnsOf(storedAt)} FROM events WHERE ${where}`);
    statement.setReturnArrays(true);
    return statement;
  };
  const ofStream = rows('stream = ? AND revision > ? ORDER BY revision');
  const ofAll = rows('position > ? ORDER BY position');
  const spanOfAll = db.prepare(
    `SELECT max(position) AS last, count(*) AS events, sum(octet_length(data) + octet_length(metadata)) AS bytes,
       sum(typeof(data) = 'text' AND typeof(metadata) = 'text') AS texts
     FROM (SELECT position, data, metadata FROM events WHERE position > ? ORDER BY position LIMIT ${BATCH_EVENTS})`,
  );
  const textOfAll = db.prepare(
    `SELECT CAST(${pageText(storedAt)} AS BLOB) AS bytes FROM events WHERE position > ? AND position <= ?`,
  );
  const fromRevision = db.prepare(
    'SELECT revision, position FROM events WHERE stream = ? AND revision >= ? ORDER BY revision LIMIT 1',
  );
  const lastRevision = db.prepare(
    'SELECT revision FROM events WHERE stream = ? ORDER BY revision DESC LIMIT 1',
  );

  /**
   * The last revision of a stream that lies at or before a row: by halving, since both grow together. A damaged log may
   * lack some of them; whoever reads its events sees that.
   */
  const revisionAt = (stream: string, rowId: number): number => {
    if (rowId === 0) return -1;
    let low = -1;
    let high = (lastRevision.get(stream) as { revision: number } | undefined)?.revision ?? -1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const found = fromRevision.get(stream, middle) as { revision: number; position: number };
      if (found.position <= rowId) low = found.revision;
      else high = middle - 1;
    }
    return low;
  };

  const inReadTransaction = <T>(work: () => T): T => {
    db.exec('BEGIN');
    try {
      return work();
    } finally {
      db.exec('COMMIT');
    }
  };

  /** Undefined: there is something in it that no JSON can hold. */
  const textUpTo = (after: number, last: number): Uint8Array | undefined => {
    try {
      return (textOfAll.get(after, last) as { bytes: Uint8Array }).bytes;
    } catch (error) {
      if (messageOf(error).includes('JSON cannot hold BLOB values')) return undefined;
      throw error;
    }
  };

  /** A page as one text, unless it is too large or does not come apart again: then row by row. */
  const takeAll = (after: number): Page => {
    const { last, events, bytes, texts } = spanOfAll.get(after) as Span;
    if (events === 0) return { batch: [], full: false };
    if (bytes >= BATCH_BYTES || texts < events) return takeBatch(ofAll.iterate(after));
    const text = textUpTo(after, last);
    const batch = text === undefined ? undefined : pageOf(text, events, after);
    return batch === undefined ? takeBatch(ofAll.iterate(after)) : { batch, full: events === BATCH_EVENTS };
  };

  /**
   * Pages on with `next` until a page is not full; with `follow` it then waits for news. News is looked at before the
   * page: what arrives in between wakes it again. Between pages others go first: a long read must not stop HTTP. A
   * follower ends when the log is closed; who reads to an end does not, since what it has is not the whole.
   */
  const pages = async function* (
    next: () => Page,
    { follow = false, signal }: ReadFrom,
  ): AsyncGenerator<Batch> {
    while (signal?.aborted !== true && !(follow && news.isClosed())) {
      const seen = follow ? news.seen() : 0;
      const { batch, full } = read(next);
      if (batch.length > 0) yield batch;
      if (full) await letOthersGo();
      else if (follow) await news.newsSince(seen, signal);
      else return;
    }
  };

  return {
    stream: (stream: string, after: number): AsyncIterable<Batch> => {
      let from = after;
      return pages(() => {
        const page = takeBatch(ofStream.iterate(stream, from));
        from = page.batch.at(-1)?.revision ?? from;
        return page;
      }, {});
    },

    all: (from: ReadFrom): AsyncIterable<Batch> => {
      let after = rowIdOf(from.after);
      return pages(() => {
        const page = takeAll(after);
        after = page.batch.length === 0 ? after : rowIdOf(page.batch.at(-1)?.position);
        return page;
      }, from);
    },

    merged: (streams: readonly string[], from: ReadFrom): AsyncIterable<Batch> => {
      const start = rowIdOf(from.after);
      const reached = new Map(streams.map((stream) => [stream, revisionAt(stream, start)]));
      return pages(() => {
        // One read transaction: without it a stream read first could miss an event that lies before one of the other's.
        const page = merge(
          inReadTransaction(() =>
            [...reached].map(([stream, after]) => takeBatch(ofStream.iterate(stream, after))),
          ),
        );
        for (const event of page.batch) reached.set(event.stream, event.revision);
        return page;
      }, from);
    },
  };
};
