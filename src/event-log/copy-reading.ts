import { createHash } from 'node:crypto';
import { fault } from '../fault';
import type { EventLog, LoggedEvent, NewEvent, Position } from './event-log';
import type { Streams } from './streams';

/** One of the two logs of a copy. */
export interface Side {
  readonly log: EventLog;
  readonly streams: Streams;
}

/** An event of ours, with what must be equal on both sides as text. */
export interface Own {
  readonly event: LoggedEvent;
  /** The stream's name without the prefix, which may differ. */
  readonly role: string;
  readonly text: Readonly<Record<Member, string>>;
}

const members = ['stream', 'revision', 'id', 'type', 'data', 'metadata', 'recordedAt'] as const;
type Member = (typeof members)[number];

const memberNames: Readonly<Record<Member, string>> = {
  stream: 'stream',
  revision: 'revision',
  id: 'id',
  type: 'type',
  data: 'data',
  metadata: 'metadata',
  recordedAt: 'recorded time',
};

/** JSON never begins like the first two, so nothing is mistaken for something else. */
const textOf = (value: unknown): string => {
  if (Buffer.isBuffer(value)) return `bytes ${value.toString('base64')}`;
  return JSON.stringify(value) ?? 'nothing';
};

const ownOf = (event: LoggedEvent, role: string): Own => ({
  event,
  role,
  text: {
    stream: JSON.stringify(role),
    revision: String(event.revision),
    id: JSON.stringify(event.id),
    type: JSON.stringify(event.type),
    data: textOf(event.data),
    // Those who write facts may leave it out; a log that cannot keep its absence keeps an empty object.
    metadata: textOf(event.metadata ?? {}),
    recordedAt: event.recordedAt,
  },
});

/** Undefined when they are equal. */
export const differenceOf = (one: Own, other: Own): string | undefined => {
  const found = members.filter((member) => one.text[member] !== other.text[member]);
  return found.length === 0 ? undefined : found.map((member) => memberNames[member]).join(', ');
};

/** How far one side was read and found equal. */
export interface Reading {
  /** What lies behind what was taken, up to a position. */
  events(upTo?: Position): AsyncGenerator<Own, undefined>;
  take(own: Own): void;
  after(): Position | undefined;
  count(): number;
  foreign(): number;
  digest(): string;
}

export const reading = ({ log, streams }: Side, from?: Position): Reading => {
  const hash = createHash('sha256');
  let after = from;
  let count = 0;
  let foreign = 0;
  let lastForeign = '';

  async function* events(upTo?: Position): AsyncGenerator<Own, undefined> {
    for await (const batch of log.readAll({ after }))
      for (const event of batch) {
        if (upTo !== undefined && event.position > upTo) return;
        const role = streams.roleOf(event.stream);
        if (role !== undefined) yield ownOf(event, role);
        else if (event.position > lastForeign) {
          // The same stretch may be read twice.
          lastForeign = event.position;
          foreign += 1;
        }
      }
  }

  return {
    events,
    take: ({ event, text }) => {
      hash.update(`${members.map((member) => text[member]).join('\n')}\n`);
      after = event.position;
      count += 1;
    },
    after: () => after,
    count: () => count,
    foreign: () => foreign,
    digest: () => hash.copy().digest('hex'),
  };
};

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);

/** JSON has numbers that JavaScript reads as infinite and would write as null. */
const holdsInfinity = (value: unknown): boolean => {
  if (typeof value === 'number') return !Number.isFinite(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInfinity);
};

/** What would not come out of the target as it lies in the source is not copied at all. */
const reasonAgainst = ({ event: { data, metadata = {} }, text }: Own): string | undefined => {
  // A bare text is what a log may give for JSON that is none.
  if (Buffer.isBuffer(data) || typeof data === 'string' || data === undefined) return 'its data is not JSON';
  if (!isRecord(metadata)) return 'its metadata is not a JSON object';
  if (Object.hasOwn(metadata, 'recordedAt'))
    return 'its metadata has a member recordedAt, which the log keeps for itself';
  if ((text.data + text.metadata).includes('null') && (holdsInfinity(data) || holdsInfinity(metadata)))
    return 'it holds a number that is too large';
  return undefined;
};

export const newEventOf = (own: Own): NewEvent => {
  const { id, type, data, metadata = {}, recordedAt, revision, stream } = own.event;
  const reason = reasonAgainst(own);
  if (reason !== undefined)
    throw fault(
      'copy_refused',
      `The event ${id} (${type}, revision ${revision} of ${stream}) cannot be copied: ${reason}.`,
    );
  return {
    id,
    type,
    data: data as NewEvent['data'],
    metadata: metadata as NewEvent['metadata'],
    recordedAt,
  };
};
