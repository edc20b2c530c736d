import { csvLine } from '../csv';
import type { LoggedEvent } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/ledger-log';
import type { Streams } from '../event-log/streams';
import { tenantPosition } from './event-places';
import { eventViews, rawEvent, tenantEvent, type RawEvent } from './event-views';

export const eventFormats = ['ndjson', 'csv'] as const;
export type EventFormat = (typeof eventFormats)[number];

/** Formats events as lines, without line feeds. Deterministic: the same events always give the same lines. */
export interface EventLines {
  /** A line before all events. */
  readonly heading?: string;
  linesOf(events: readonly LoggedEvent[]): Promise<readonly string[]>;
  /** The position of an event as its line shows it. */
  positionOf(event: LoggedEvent): string;
}

type Column = readonly [name: string, value: (event: RawEvent) => unknown];

const actorMember =
  (name: string) =>
  ({ actor }: RawEvent): unknown =>
    (actor as Readonly<Record<string, unknown>> | undefined)?.[name];

const columnsOf = (...names: readonly (keyof RawEvent)[]): readonly Column[] =>
  names.map((name) => [name, (event) => event[name]]);

const columns: readonly Column[] = [
  ...columnsOf('id', 'type', 'version', 'tenant_id', 'stream', 'revision', 'position', 'recorded_at'),
  ['actor_type', actorMember('type')],
  ['actor_id', actorMember('id')],
  ...columnsOf('trace_id', 'key_id'),
  ['data', ({ data }) => JSON.stringify(data)],
  ['metadata', ({ metadata }) => JSON.stringify(metadata)],
];

const csvOf = (event: RawEvent): string => csvLine(columns.map(([, value]) => value(event)));

export const eventLines = (format: EventFormat, streams: Streams): EventLines => {
  const [heading, lineOf] =
    format === 'csv' ? [{ heading: columns.map(([name]) => name).join(',') }, csvOf] : [{}, JSON.stringify];
  return {
    ...heading,
    positionOf: ({ position }) => position,
    linesOf: async (events) => events.map((event) => lineOf(rawEvent(event, streams))),
  };
};

/** The lines of `GET /events`, in a version that a trailer names. */
export const tenantLines = (ledgerLog: LedgerLog, version: 1 | 2): EventLines => {
  const { streams } = ledgerLog;
  const view =
    version === 1 ? async (event: LoggedEvent) => tenantEvent(event, streams) : eventViews(ledgerLog);
  return {
    positionOf: (event) => tenantPosition(event, streams),
    linesOf: async (events) => {
      const lines: string[] = [];
      for (const event of events) lines.push(JSON.stringify(await view(event)));
      return lines;
    },
  };
};
