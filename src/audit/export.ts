import { createHash } from 'node:crypto';
import type { LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import type { Streams } from '../event-log/streams';
import { findEvents, upToLimit, type EventFilter, type EventRange, type Reached } from './event-filter';
import { revisionsUpTo, type Revisions } from './event-places';
import { rawEvent, tenantEvent } from './event-views';

/** What an export was asked for. Undefined members are omitted from the JSON. */
export interface Conditions {
  /** Whose events and positions the lines show: those of the log, or those of one tenant (`event-views.ts`). */
  readonly view: 'operator' | 'tenant';
  readonly filter: EventFilter;
  readonly after?: string | undefined;
  /** The maximum number of events. */
  readonly limit?: number | undefined;
}

/** The last line of an export: together with the log it determines every byte of the lines before it. */
export interface Trailer extends Conditions {
  /** The identity of the log. */
  readonly log: string;
  /**
   * The last position to read, inclusive: the end of the log when the export started or, if the limit ended it, the last
   * event. A tenant sees it as revisions. Undefined: the log was empty.
   */
  readonly up_to?: Position | Revisions | undefined;
  readonly events: number;
  /** The digest of all lines before it, with their line feeds. */
  readonly sha256: string;
}

/** Counts and hashes the lines of an export as they are written. */
export const trailerBuilder = ({ view, filter, after, limit }: Conditions) => {
  const hash = createHash('sha256');
  let events = 0;
  return {
    add: (lines: readonly string[]): void => {
      if (lines.length > 0) hash.update(`${lines.join('\n')}\n`);
      events += lines.length;
    },
    trailerLine: async (ledgerLog: LedgerLog, upTo: Position | undefined): Promise<string> => {
      const tenantId = filter.tenants?.[0] ?? '';
      const up_to = view === 'tenant' ? await revisionsUpTo(ledgerLog, tenantId, upTo ?? '') : upTo;
      const [log, sha256] = [await ledgerLog.log.identity(), hash.digest('hex')];
      const trailer: Trailer = { log, view, filter, after, limit, up_to, events, sha256 };
      return JSON.stringify({ trailer });
    },
  };
};

export interface ExportedLines {
  readonly lines: readonly string[];
  /** The number of events read, matching or not. */
  readonly read: number;
  /** The last event read, matching or not: everything up to it has been read. The trailer has none. */
  readonly last?: LoggedEvent;
}

export interface Exporting {
  /** Lines for people instead of JSON, without a trailer. */
  readonly prettyLine?: ((event: LoggedEvent) => string) | undefined;
  /** Called for an event that could not be decoded, and so not compared with an entity or operation. */
  onUnreadable(): void;
}

const jsonLine = (view: Conditions['view'], streams: Streams) => (event: LoggedEvent) =>
  JSON.stringify(view === 'tenant' ? tenantEvent(event, streams) : rawEvent(event, streams));

/**
 * The lines of an export in batches, the trailer last: the same conditions and range always give the same lines. Reads as
 * fast as they are taken. An aborted export has no trailer.
 */
export async function* exportLines(
  ledgerLog: LedgerLog,
  conditions: Conditions,
  range: EventRange,
  { prettyLine, onUnreadable }: Exporting,
): AsyncGenerator<ExportedLines> {
  const { view, filter, limit = Infinity } = conditions;
  const trail = trailerBuilder(conditions);
  const lineOf = prettyLine ?? jsonLine(view, ledgerLog.streams);
  const reached: Reached = { place: undefined, remaining: limit };
  // Without an end, the log is empty, and what is appended meanwhile is not exported.
  const upTo = range.follow === true ? undefined : (range.upTo ?? '');
  const steps = findEvents(ledgerLog, filter, { ...range, upTo }, onUnreadable);
  for await (const { events, read, last } of upToLimit(steps, reached)) {
    const lines = events.map(lineOf);
    trail.add(lines);
    yield { lines, read, last };
  }
  if (prettyLine !== undefined || range.signal?.aborted === true) return;
  const end = reached.remaining === 0 ? reached.place?.position : range.upTo;
  yield { lines: [await trail.trailerLine(ledgerLog, end)], read: 0 };
}
