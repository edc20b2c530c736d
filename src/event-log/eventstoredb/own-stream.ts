import { randomUUID } from 'node:crypto';
import { uuidFrom } from '../../domain/texts';
import { codeOf, fault, moreOf, type Fault } from '../../fault';
import {
  isJsonObject,
  LOG_FORMAT,
  UNFINISHED_COPY,
  type EventLog,
  type Expected,
  type LoggedEvent,
  type NewEvent,
  type Position,
} from '../event-log';
import type { StreamReader } from './stream-reader';

/**
 * The log's own stream. The first event has the identity, and the last one the format: there are two in the target of a
 * completed copy, else one. The first process to start writes it, once.
 */
const TYPE = 'LogMade';
const COMPLETED = 'LogCopied';

interface OwnStream {
  readonly identity: string;
  readonly format: number;
  /** Everything else in this log comes after this position. */
  readonly position: Position;
}

const notOurs = (stream: string): Fault =>
  fault(
    'log_unavailable',
    `Stream ${stream} of the event store belongs to another program. Choose a STREAM_PREFIX.`,
    { isFinal: true, isForeign: true },
  );

/** The identity was deleted, or something else is in its place. */
const isGone = (error: unknown): boolean =>
  codeOf(error) === 'history_missing' || moreOf(error)['isForeign'] === true;

const identityIn = ({ type, revision, data }: LoggedEvent): string | undefined => {
  const identity = isJsonObject(data) ? data['identity'] : undefined;
  return type === TYPE && revision === 0 ? uuidFrom(identity) : undefined;
};

const formatIn = ({ data }: LoggedEvent): number => Number(isJsonObject(data) ? data['format'] : undefined);

/** Undefined if there is no log here. Throws if the stream belongs to another program. */
const readOwn = async (reader: StreamReader, stream: string): Promise<OwnStream | undefined> => {
  let own: OwnStream | undefined;
  for await (const batch of reader.forwards(stream, -1))
    for (const event of batch) {
      const identity = own?.identity ?? identityIn(event);
      if (identity === undefined) throw notOurs(stream);
      own = { identity, format: formatIn(event), position: own?.position ?? event.position };
    }
  return own;
};

interface NewLog {
  /** Thrown instead of creating the log. */
  readonly missingFault?: Fault | undefined;
  /** The log is the target of a copy. */
  readonly isCopy?: boolean | undefined;
}

export const ownStream = (reader: StreamReader, append: EventLog['append'], stream: string) => {
  /** If another process wrote the event, that one counts. */
  const write = async (type: string, data: NewEvent['data'], expected: Expected): Promise<void> => {
    const event = { id: randomUUID(), type, data, metadata: {} };
    await append(stream, [event], expected).catch((error: unknown) => {
      if (codeOf(error) !== 'stream_changed') throw error;
    });
  };

  return {
    findOrCreate: async ({ missingFault, isCopy = false }: NewLog): Promise<OwnStream> => {
      const known = await readOwn(reader, stream);
      if (known !== undefined) return known;
      if (missingFault !== undefined) throw missingFault;
      const format = isCopy ? UNFINISHED_COPY : LOG_FORMAT;
      await write(TYPE, { identity: randomUUID(), format }, 'no_stream');
      const created = await readOwn(reader, stream);
      if (created === undefined) throw fault('log_unavailable', `Stream ${stream} cannot be read.`);
      return created;
    },
    identity: async (): Promise<string | undefined> => {
      const found = await readOwn(reader, stream).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
      return found?.identity;
    },
    completeCopy: async (): Promise<void> => {
      if ((await readOwn(reader, stream))?.format === UNFINISHED_COPY)
        await write(COMPLETED, { format: LOG_FORMAT }, 0);
    },
  };
};
