import { createHash } from 'node:crypto';
import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import { findEvents, upToLimit, type EventFilter } from './event-filter';
import type { EventFormat, EventLines } from './event-lines';
import type { Revisions } from './event-places';

/** What was asked for. Undefined members are omitted from the JSON. */
export interface Conditions {
  /** Whose events and positions the lines show: those of the log, or those of one tenant (`event-views.ts`). */
  readonly view: 'operator' | 'tenant';
  /** Of the lines in the view of a tenant. Undefined: 1, without `log` and `changes`. */
  readonly version?: 2 | undefined;
  readonly format: EventFormat;
  readonly filter: EventFilter;
  readonly after?: string | undefined;
  /** The maximum number of events. */
  readonly limit?: number | undefined;
  /** It also waited for new events. */
  readonly follow?: boolean | undefined;
}

/** Which log was exported, and up to where. */
export interface Extent {
  readonly log: string;
  /**
   * The last position to read, inclusive: the end of the log when the export started or, if the limit ended it, the last
   * event. A tenant sees it as revisions. Undefined: the log was empty.
   */
  readonly up_to?: Position | Revisions | undefined;
}

/** The last line of an export: together with the log it determines every byte of the lines before it. */
export interface Trailer extends Conditions, Extent {
  /** False: the limit ended it, and there may be more. */
  readonly complete: boolean;
  readonly events: number;
  readonly first_position?: string | undefined;
  readonly last_position?: string | undefined;
  /** The digest of all lines before it, with their line feeds. */
  readonly sha256: string;
}

const orderedFilter = (filter: EventFilter): EventFilter => {
  const { tenants, types, actor, entity, operation, trace, key, since, until } = filter;
  const ordered = entity === undefined ? undefined : { type: entity.type, id: entity.id };
  return { tenants, types, actor, entity: ordered, operation, trace, key, since, until };
};

const orderedRevisions = (upTo: Trailer['up_to']): Trailer['up_to'] =>
  typeof upTo === 'object' ? { tenant: upTo.tenant, activity: upTo.activity } : upTo;

/** The only form of a trailer: always the same members in the same order. */
export const trailerLine = (trailer: Trailer): string => {
  const { log, view, version, format, filter, after, limit, follow, up_to, complete, ...summary } = trailer;
  const { events, first_position, last_position, sha256 } = summary;
  const ordered: Trailer = {
    log,
    view,
    version,
    format,
    filter: orderedFilter(filter),
    after,
    limit,
    follow: follow === true ? true : undefined,
    up_to: orderedRevisions(up_to),
    complete,
    events,
    first_position,
    last_position,
    sha256,
  };
  return JSON.stringify({ trailer: ordered });
};

export interface ExportedChunk {
  /** The number of events read, matching or not. */
  readonly read: number;
  /** Whole lines, each with a line feed. */
  readonly bytes: Buffer;
  readonly lines: number;
  /** The last event read, matching or not: everything up to it has been read. Undefined: none yet. */
  readonly last?: LoggedEvent;
}

/** Counts and hashes lines as they are written. */
export const trailerBuilder = () => {
  const hash = createHash('sha256');
  let events = 0;
  let first: string | undefined;
  let last: string | undefined;

  const isFull = ({ limit = Infinity }: Conditions): boolean => events >= limit;

  return {
    add: (lines: Buffer | string, positions: readonly string[]): void => {
      hash.update(lines);
      events += positions.length;
      first ??= positions[0];
      last = positions.at(-1) ?? last;
    },
    /** Whether there are as many events as were asked for. */
    isFull,
    trailer: (conditions: Conditions, extent: Extent): Trailer => ({
      ...conditions,
      ...extent,
      complete: !isFull(conditions),
      events,
      first_position: first,
      last_position: last,
      sha256: hash.copy().digest('hex'),
    }),
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

/** The part of the log to export. */
export interface ExportRange {
  readonly filter: EventFilter;
  readonly after?: Position | undefined;
  /** Inclusive. */
  readonly upTo?: Position | undefined;
  readonly limit?: number | undefined;
}

/** The lines of an export, chunk by chunk, with backpressure: never holds much more than one batch in memory. */
export async function* exportEvents(
  ledgerLog: LedgerLog,
  { filter, after, upTo, limit = Infinity }: ExportRange,
  { lines, follow = false, signal, onUnreadable }: Exporting,
  trail: Pick<ReturnType<typeof trailerBuilder>, 'add'>,
): AsyncIterable<ExportedChunk> {
  if (lines.heading !== undefined) {
    const bytes = bytesOf([lines.heading]);
    trail.add(bytes, []);
    yield { bytes, lines: 1, read: 0 };
  }
  // The log is empty.
  if (upTo === undefined && !follow) return;
  const steps = findEvents(ledgerLog, filter, { after, upTo, follow, signal }, onUnreadable);
  const limited = upToLimit(steps, { place: undefined, remaining: limit });
  for await (const { events, read, last } of limited) {
    const bytes = bytesOf(await lines.linesOf(events));
    trail.add(
      bytes,
      events.map((event) => lines.positionOf(event)),
    );
    yield { bytes, lines: events.length, read, last };
  }
}
