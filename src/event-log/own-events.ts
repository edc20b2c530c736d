import { createHash } from 'node:crypto';
import type { LoggedEvent } from './event-log';

/** An event of ours. `text` holds everything that must be equal in every copy of the log. */
export interface Own {
  readonly event: LoggedEvent;
  /** The stream's name without the prefix, which may differ. */
  readonly role: string;
  readonly text: Readonly<Record<Member, string>>;
}

const members = ['stream', 'revision', 'id', 'type', 'data', 'metadata', 'recordedAt'] as const;
type Member = (typeof members)[number];

const nameOf = (member: Member): string => (member === 'recordedAt' ? 'recorded time' : member);

/** No JSON text begins with these words, so nothing is mistaken for something else. */
const textOf = (value: unknown): string => {
  if (Buffer.isBuffer(value)) return `bytes ${value.toString('base64')}`;
  return JSON.stringify(value) ?? 'nothing';
};

export const ownOf = (event: LoggedEvent, role: string): Own => ({
  event,
  role,
  text: {
    stream: JSON.stringify(role),
    revision: String(event.revision),
    id: JSON.stringify(event.id),
    type: JSON.stringify(event.type),
    data: textOf(event.data),
    // Writers of facts may omit it; a log that cannot store its absence stores an empty object.
    metadata: textOf(event.metadata ?? {}),
    recordedAt: event.recordedAt,
  },
});

/** Undefined when they are equal. */
export const differenceOf = (one: Own, other: Own): string | undefined => {
  const found = members.filter((member) => one.text[member] !== other.text[member]);
  return found.length === 0 ? undefined : found.map(nameOf).join(', ');
};

/**
 * A SHA-256 over events in the order of the log: of each its stream without the prefix, revision, id, type, data, metadata
 * and recorded time, each followed by a line feed. A log and its copy have the same; positions do not count.
 */
export const runningDigest = () => {
  const hash = createHash('sha256');
  return {
    add: ({ text }: Own): void =>
      void hash.update(
        `${text.stream}\n${text.revision}\n${text.id}\n${text.type}\n${text.data}\n${text.metadata}\n${text.recordedAt}\n`,
      ),
    /** Of everything so far. */
    soFar: (): string => hash.copy().digest('hex'),
  };
};
