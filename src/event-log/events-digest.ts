import { createHash } from 'node:crypto';
import type { LoggedEvent } from './event-log';

/** Unambiguous, since no JSON text starts with `bytes` or `nothing`. */
const textOf = (value: unknown): string => {
  if (Buffer.isBuffer(value)) return `bytes ${value.toString('base64')}`;
  return JSON.stringify(value) ?? 'nothing';
};

/**
 * SHA-256 over events in log order: of each its stream, revision, id, type, data, metadata and recorded time, each
 * followed by a line feed. Positions are left out, so a log and its copy in another store have the same digest.
 */
export const eventsDigest = () => {
  const hash = createHash('sha256');
  let events = 0;
  return {
    add: ({ stream, revision, id, type, data, metadata, recordedAt }: LoggedEvent): void => {
      events += 1;
      const names = `${textOf(stream)}\n${revision}\n${textOf(id)}\n${textOf(type)}\n`;
      // Facts may come without metadata; a log that cannot store that stores an empty object.
      hash.update(`${names}${textOf(data)}\n${textOf(metadata ?? {})}\n${recordedAt}\n`);
    },
    /** How many they are so far. */
    count: (): number => events,
    value: (): string => hash.digest('hex'),
  };
};
