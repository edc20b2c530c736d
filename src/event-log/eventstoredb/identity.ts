import { randomUUID } from 'node:crypto';
import { codeOf, type Fault } from '../../fault';
import {
  APPEND_MS,
  logFault,
  type Expected,
  type LoggedEvent,
  type NewEvent,
  type Position,
} from '../event-log';
import type { StreamReader } from './stream-reader';

/** The first event of the log's own stream says which log this is. It is written once, by whoever comes first. */
const TYPE = 'LogMade';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

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

const notOurs = (stream: string): Fault =>
  logFault(
    'log_unavailable',
    `Stream ${stream} of the event store belongs to another program. Choose a STREAM_PREFIX.`,
    { isFinal: true, isForeign: true },
  );

/** Something else is where the identity was. */
export const isGone = (error: unknown): boolean =>
  codeOf(error) === 'history_missing' || (error as Partial<Fault>).more?.['isForeign'] === true;

const identityIn = ({ type, revision, data, position }: LoggedEvent): Identity | undefined => {
  const { identity } = (typeof data === 'object' && data !== null ? data : {}) as { identity?: unknown };
  const isOurs = type === TYPE && revision === 0 && typeof identity === 'string' && UUID.test(identity);
  return isOurs ? { identity, position } : undefined;
};

/** Undefined while no log was made here. What only looks like an identity is refused. */
export const writtenIdentity = async (
  reader: StreamReader,
  stream: string,
): Promise<Identity | undefined> => {
  for await (const [event] of reader.forwards(stream, -1)) {
    const found = event === undefined ? undefined : identityIn(event);
    if (found === undefined) throw notOurs(stream);
    return found;
  }
  return undefined;
};

export const identityOf = async (
  reader: StreamReader,
  append: Append,
  stream: string,
  unlessThere?: Fault,
): Promise<Identity> => {
  const known = await writtenIdentity(reader, stream);
  if (known !== undefined) return known;
  if (unlessThere !== undefined) throw unlessThere;
  const event = { id: randomUUID(), type: TYPE, data: { identity: randomUUID() }, metadata: {} };
  await append(stream, [event], 'no_stream', APPEND_MS).catch((error: unknown) => {
    if (codeOf(error) !== 'stream_changed') throw error;
  });
  const made = await writtenIdentity(reader, stream);
  if (made === undefined) throw logFault('log_unavailable', `Stream ${stream} cannot be read.`);
  return made;
};
