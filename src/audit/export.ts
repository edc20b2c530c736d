import { createHash } from 'node:crypto';
import type { Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import {
  findEvents,
  type EventFilter,
  type EventRange,
  type FindOptions,
  type FoundEvents,
} from './event-filter';
import { revisionsUpTo, type Revisions } from './event-places';
import { rawEvent, tenantEvent } from './event-views';

/** What an export was asked for. Undefined members are omitted from the JSON. */
export interface Conditions {
  /** Whose events and positions the lines show: those of the log, or those of one tenant (`event-views.ts`). */
  readonly view: 'operator' | 'tenant';
  readonly filter: EventFilter;
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/** The last line of an export: together with the log it determines every byte of the lines before it. */
export interface Trailer extends Conditions {
  /** The identity of the log. */
  readonly log: string;
  /**
   * The last position to read, inclusive: the end of the log when the export started or, if the limit ended it, the last
   * event. A tenant sees it as revisions. It is absent if the log was empty.
   */
  readonly up_to?: Position | Revisions | undefined;
  readonly events: number;
  /** The digest of all lines before it, with their line feeds. */
  readonly sha256: string;
}

/** Counts and hashes the lines of an export as they are written. */
const trailerOf = ({ view, filter, after, limit }: Conditions, ledgerLog: LedgerLog) => {
  const hash = createHash('sha256');
  let events = 0;
  return {
    add: (lines: readonly string[]): void => {
      if (lines.length > 0) hash.update(`${lines.join('\n')}\n`);
      events += lines.length;
    },
    line: async (upTo: Position | undefined): Promise<string> => {
      const tenantId = filter.tenants?.[0] ?? '';
      const up_to = view === 'tenant' ? await revisionsUpTo(ledgerLog, tenantId, upTo ?? '') : upTo;
      const log = await ledgerLog.log.identity();
      const sha256 = hash.digest('hex');
      const trailer: Trailer = { log, view, filter, after, limit, up_to, events, sha256 };
      return JSON.stringify({ trailer });
    },
  };
};

/** A batch of an export: the events that were found, each with its line. */
export interface ExportedLines extends FoundEvents {
  readonly lines: readonly string[];
  /** Its only line is the trailer, and the export is complete. */
  readonly isTrailer: boolean;
}

/**
 * The lines of an export in batches, the trailer last: the same conditions and range always give the same lines. Reads as
 * fast as they are taken. An aborted export has no trailer.
 */
export async function* exportLines(
  ledgerLog: LedgerLog,
  conditions: Conditions,
  range: Omit<EventRange, 'limit'>,
  finding: FindOptions,
): AsyncGenerator<ExportedLines> {
  const { view, filter, limit } = conditions;
  const trailer = trailerOf(conditions, ledgerLog);
  const viewOf = view === 'tenant' ? tenantEvent : rawEvent;
  // Without an end, the log is empty, and what is appended meanwhile is not exported.
  const upTo = range.follow === true ? undefined : (range.upTo ?? '');
  let end = range.upTo;
  let remaining = limit ?? Infinity;
  for await (const found of findEvents(ledgerLog, filter, { ...range, upTo, limit }, finding)) {
    const lines = found.events.map((event) => JSON.stringify(viewOf(event, ledgerLog.streams)));
    trailer.add(lines);
    remaining -= lines.length;
    if (remaining === 0) end = found.last?.position;
    yield { ...found, lines, isTrailer: false };
  }
  if (range.signal?.aborted === true) return;
  yield { lines: [await trailer.line(end)], events: [], read: 0, last: undefined, isTrailer: true };
}
