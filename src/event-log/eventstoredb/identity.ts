import { randomUUID } from 'node:crypto';
import { codeOf } from '../../fault';
import { APPEND_MS, logFault, type Expected, type NewEvent, type Position } from '../event-log';
import type { StreamReader } from './stream-reader';

/** The first event of the log's own stream says which log this is. It is written once, by whoever comes first. */
const TYPE = 'LogMade';

type Append = (
  stream: string,
  events: readonly NewEvent[],
  expected: Expected,
  withinMs: number,
) => Promise<unknown>;

export interface Identity {
  readonly identity: string;
  /** Everything else in this log comes later. */
  readonly position: Position;
}

const written = async (reader: StreamReader, stream: string): Promise<Identity | undefined> => {
  for await (const [event] of reader.forwards(stream, -1)) {
    const { identity } = (event?.data ?? {}) as { identity?: unknown };
    if (event !== undefined && typeof identity === 'string') return { identity, position: event.position };
    throw logFault(
      'log_unavailable',
      `Stream ${stream} of the event store belongs to another program. Choose a STREAM_PREFIX.`,
      { isFinal: true },
    );
  }
  return undefined;
};

export const identityOf = async (reader: StreamReader, append: Append, stream: string): Promise<Identity> => {
  const known = await written(reader, stream);
  if (known !== undefined) return known;
  const event = { id: randomUUID(), type: TYPE, data: { identity: randomUUID() }, metadata: {} };
  await append(stream, [event], 'no_stream', APPEND_MS).catch((error: unknown) => {
    if (codeOf(error) !== 'stream_changed') throw error;
  });
  const made = await written(reader, stream);
  if (made === undefined) throw logFault('log_unavailable', `Stream ${stream} cannot be read.`);
  return made;
};
