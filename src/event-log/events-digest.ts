import { createHash } from 'node:crypto';
import { upTo, type LoggedEvent, type Position } from './event-log';
import type { LedgerLog } from './streams';

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
  return {
    add: ({ stream, revision, id, type, data, metadata, recordedAt }: LoggedEvent): void => {
      const names = `${textOf(stream)}\n${revision}\n${textOf(id)}\n${textOf(type)}\n`;
      // Facts may come without metadata; a log that cannot store that stores an empty object.
      hash.update(`${names}${textOf(data)}\n${textOf(metadata ?? {})}\n${recordedAt}\n`);
    },
    value: (): string => hash.digest('hex'),
  };
};

/** The number of events in the ledger's streams up to a position, and their digest. */
export const digestUpTo = async (
  { log, streams }: LedgerLog,
  last: Position | undefined,
  onProgress: (events: number) => void,
): Promise<{ readonly events: number; readonly digest: string }> => {
  const digest = eventsDigest();
  let events = 0;
  for await (const batch of upTo(log.readAll(), last)) {
    for (const event of batch.filter(({ stream }) => streams.holds(stream))) {
      digest.add(event);
      events += 1;
    }
    onProgress(events);
  }
  return { events, digest: digest.value() };
};
