import { createHash } from 'node:crypto';
import type { Head, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { findEvents, upToLimit, type EventFilter } from './event-filter';
import type { EventFormat, EventLines } from './event-lines';

/** Together with the log, determines every byte of the lines. Undefined members are omitted from the JSON. */
export interface ExportRequest {
  readonly format: EventFormat;
  readonly filter: EventFilter;
  readonly after?: Position | undefined;
  /** The last position to read, inclusive: the head of the log when the export started. */
  readonly up_to?: Position | undefined;
  /** The maximum number of events. */
  readonly limit?: number | undefined;
}

/** The last line of an exported file, which allows checking that the file is complete and unaltered. */
export interface Trailer extends ExportRequest {
  readonly log: string;
  readonly events: number;
  readonly first_position?: Position | undefined;
  readonly last_position?: Position | undefined;
  /** The digest of all lines before it, with their line feeds. */
  readonly sha256: string;
}

export interface ExportedChunk {
  /** The number of events read, matching or not. */
  readonly read: number;
  /** Everything up to this position has been read. */
  readonly position: Position;
  /** Whole lines, each with a line feed. */
  readonly bytes: Buffer;
  readonly lines: number;
  /** The last event read, matching or not. Undefined: none yet. */
  readonly last?: Head;
}

/** Counts and hashes lines as they are written. */
export const trailerBuilder = () => {
  const hash = createHash('sha256');
  let events = 0;
  let first: Position | undefined;
  let last: Position | undefined;

  const summary = () => ({
    events,
    first_position: first,
    last_position: last,
    sha256: hash.copy().digest('hex'),
  });

  return {
    add: (lines: Buffer | string, positions: readonly Position[]): void => {
      hash.update(lines);
      events += positions.length;
      first ??= positions[0];
      last = positions.at(-1) ?? last;
    },
    summary,
    trailer: (request: ExportRequest, log: string): Trailer => ({ log, ...request, ...summary() }),
  };
};

const bytesOf = (lines: readonly string[]): Buffer =>
  Buffer.from(lines.length === 0 ? '' : `${lines.join('\n')}\n`);

export interface Exporting {
  readonly lines: EventLines;
  readonly follow?: boolean;
  readonly signal?: AbortSignal;
  /** Called for an event that could not be decoded, and so not compared with an entity or operation. */
  onUnreadable(): void;
}

/** The lines of an export, chunk by chunk, with backpressure: never holds much more than one batch in memory. */
export async function* exportEvents(
  ledgerLog: LedgerLog,
  { filter, after, up_to, limit = Infinity }: ExportRequest,
  { lines, follow = false, signal, onUnreadable }: Exporting,
  trail: Pick<ReturnType<typeof trailerBuilder>, 'add'>,
): AsyncIterable<ExportedChunk> {
  if (lines.heading !== undefined) {
    const bytes = bytesOf([lines.heading]);
    trail.add(bytes, []);
    yield { bytes, lines: 1, read: 0, position: after ?? '' };
  }
  // The log is empty.
  if (up_to === undefined && !follow) return;
  const range = { after, upTo: up_to, follow, signal };
  const steps = findEvents(ledgerLog, filter, range, onUnreadable);
  const limited = upToLimit(steps, { position: after, remaining: limit });
  for await (const { events, read, position, last } of limited) {
    const bytes = bytesOf(await lines.linesOf(events));
    trail.add(
      bytes,
      events.map((event) => event.position),
    );
    yield { bytes, lines: events.length, read, position, last };
  }
}
