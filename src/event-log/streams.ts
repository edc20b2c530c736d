import type { StreamKind } from '../domain/events';
import { UUID_PATTERN } from '../domain/texts';
import type { EventLog, LoggedEvent } from './event-log';

/** The only place that knows the pattern of stream names. Names are matched whole, never by prefix alone. */

export interface Streams {
  /** All our stream names start with it. */
  readonly prefix: string;
  /** Decisions about a tenant, its Applications and their keys. */
  tenant(tenantId: string): string;
  /** Facts that other services report about a tenant. */
  activity(tenantId: string): string;
  /** What the operator does besides deciding about tenants. */
  operator(): string;
  /** Identifies the log and holds its format. Neither copied nor projected. */
  log(): string;
  /** Whether it is one of ours with events to copy and project. */
  holds(stream: string): boolean;
  /** Every name that `holds` accepts starts with one of these; other names may too. */
  prefixes(): readonly string[];
  /** The kind and tenant of the stream, or undefined if it is not a tenant's. */
  parse(stream: string): StreamOwner | undefined;
}

interface StreamOwner {
  readonly kind: StreamKind;
  readonly tenantId: string;
}

const MAX_PARSED = 1_000;

export const streamNames = (prefix = ''): Streams => {
  const pattern = new RegExp(`^(tenant|activity)-(${UUID_PATTERN})$`);
  /** The name of a stream is needed several times for each of its events. */
  const parsed = new Map<string, StreamOwner>();

  const suffixOf = (stream: string): string => (stream.startsWith(prefix) ? stream.slice(prefix.length) : '');

  return {
    prefix,
    tenant: (tenantId) => `${prefix}tenant-${tenantId}`,
    activity: (tenantId) => `${prefix}activity-${tenantId}`,
    operator: () => `${prefix}operator`,
    log: () => `${prefix}log`,
    holds: (stream) => suffixOf(stream) === 'operator' || pattern.test(suffixOf(stream)),
    prefixes: () => [`${prefix}tenant-`, `${prefix}activity-`, `${prefix}operator`],
    parse: (stream) => {
      const known = parsed.get(stream);
      if (known !== undefined) return known;
      const match = pattern.exec(suffixOf(stream));
      if (match === null) return undefined;
      const owner = { kind: match[1] as StreamKind, tenantId: match[2] as string };
      if (parsed.size >= MAX_PARSED) parsed.clear();
      parsed.set(stream, owner);
      return owner;
    },
  };
};

/** A log and the names of our streams in it. */
export interface LedgerLog {
  readonly log: EventLog;
  readonly streams: Streams;
}

const revisions = (first: number, last: number): string =>
  first === last ? `revision ${first}` : `revisions ${first} to ${last}`;

/** What is missing before an event if the stream was at revision `last` (-1: empty); undefined if it is the next one. */
export const gapBefore = ({ stream, revision }: Pick<LoggedEvent, 'stream' | 'revision'>, last: number) => {
  if (revision === last + 1) return undefined;
  return revision > last
    ? `Events are missing from the log: the stream ${stream} lacks ${revisions(last + 1, revision - 1)} before this event.`
    : `Events are missing from the log: the stream ${stream} continues with revision ${revision}, although it had reached revision ${last}.`;
};
