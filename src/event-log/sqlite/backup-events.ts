import { hash } from 'node:crypto';
import { yieldToEventLoop } from '../../async/clock';
import { inTransaction, type Database } from '../../sqlite/database';

/** Events are copied from an attached file, `source`, into `main`. */
export type Schema = 'main' | 'source';

/** A beginning of a log, up to an event. */
export interface Beginning {
  readonly events: number;
  /** The row id of the event. */
  readonly last: number;
  /** See `chainEvents`. */
  readonly chain: string;
}

export const NO_EVENTS: Beginning = { events: 0, last: 0, chain: '0'.repeat(64) };

const PAGE_EVENTS = 1_000;
const CHUNK_EVENTS = 5_000;

const TEXTS = ['stream', 'id', 'type', 'data', 'metadata'];
const COLUMNS = ['position', 'revision', 'recorded_at', ...TEXTS].join();

/** Everything that is stored of an event. The lengths make it unambiguous. */
const BYTES = `CAST(concat_ws(' ', position, revision, recorded_at,
  ${TEXTS.map((name) => `octet_length(${name})`).join()}) || char(10) || ${TEXTS.join(' || ')} AS BLOB)`;

/**
 * Continues the hash chain of a beginning up to a position, and yields to the event loop in between: of each event,
 * SHA-256 over the chain before it and everything that is stored of it.
 */
export const chainEvents = async (
  db: Database,
  schema: Schema,
  from: Beginning,
  upTo: number,
  onPage?: (events: number) => void,
): Promise<Beginning> => {
  const page = db.prepare(
    `SELECT position, ${BYTES} FROM ${schema}.events
     WHERE position > ? AND position <= ? ORDER BY position LIMIT ${PAGE_EVENTS}`,
  );
  page.setReturnArrays(true);
  let { events, last, chain } = from;
  for (let before = -1; before !== events; await yieldToEventLoop()) {
    before = events;
    for (const row of page.iterate(last, upTo)) {
      const [position, bytes] = row as unknown as [number, Uint8Array];
      chain = hash('sha256', Buffer.concat([Buffer.from(chain), bytes]));
      [events, last] = [events + 1, position];
    }
    onPage?.(events);
  }
  return { events, last, chain };
};

export const headIn = (db: Database, schema: Schema): number =>
  (db.prepare(`SELECT max(position) AS head FROM ${schema}.events`).get() as { head: number | null }).head ??
  0;

/** Copies the events after those that are there, up to a position, byte by byte, in transactions of thousands. */
export const copyEvents = async (
  db: Database,
  upTo: number,
  onProgress: (copied: number) => void,
): Promise<void> => {
  const insert = db.prepare(
    `INSERT INTO main.events (${COLUMNS}) SELECT ${COLUMNS}
     FROM source.events WHERE position > ? AND position <= ? ORDER BY position LIMIT ${CHUNK_EVENTS}`,
  );
  for (let [copied, changes] = [0, 1]; changes > 0; await yieldToEventLoop()) {
    ({ changes } = inTransaction(db, () => insert.run(headIn(db, 'main'), upTo)));
    onProgress((copied += changes));
  }
  // What was written is then read from the file, not from memory.
  db.exec('PRAGMA shrink_memory');
};
