import { createHash } from 'node:crypto';
import type { LoggedEvent } from './event-log';

/** An event in one of our streams. `text` is what must be equal in every copy of the log. */
export interface ComparableEvent {
  readonly event: LoggedEvent;
  /** The stream name without the prefix, which may differ between logs. */
  readonly name: string;
  readonly text: Readonly<Record<Member, string>>;
}

const members = ['stream', 'revision', 'id', 'type', 'data', 'metadata', 'recordedAt'] as const;
type Member = (typeof members)[number];

const nameOf = (member: Member): string => (member === 'recordedAt' ? 'recorded time' : member);

/** Unambiguous, since no JSON text starts with `bytes` or `nothing`. */
const textOf = (value: unknown): string => {
  if (Buffer.isBuffer(value)) return `bytes ${value.toString('base64')}`;
  return JSON.stringify(value) ?? 'nothing';
};

export const comparableOf = (event: LoggedEvent, name: string): ComparableEvent => ({
  event,
  name,
  text: {
    stream: JSON.stringify(name),
    revision: String(event.revision),
    id: JSON.stringify(event.id),
    type: JSON.stringify(event.type),
    data: textOf(event.data),
    // Facts may come without metadata; a log that cannot store that stores an empty object.
    metadata: textOf(event.metadata ?? {}),
    recordedAt: event.recordedAt,
  },
});

/** Undefined if they are equal. */
export const differenceOf = (one: ComparableEvent, other: ComparableEvent): string | undefined => {
  const different = members.filter((member) => one.text[member] !== other.text[member]);
  return different.length === 0 ? undefined : different.map(nameOf).join(', ');
};

/**
 * SHA-256 over the events in log order: of each its stream without the prefix, revision, id, type, data, metadata and
 * recorded time, each followed by a line feed. Positions are left out, so a log and its copy have the same digest.
 */
export const runningDigest = () => {
  const hash = createHash('sha256');
  return {
    add: ({ text }: ComparableEvent): void =>
      void hash.update(
        `${text.stream}\n${text.revision}\n${text.id}\n${text.type}\n${text.data}\n${text.metadata}\n${text.recordedAt}\n`,
      ),
    soFar: (): string => hash.copy().digest('hex'),
  };
};
