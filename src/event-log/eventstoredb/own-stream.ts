import { randomUUID } from 'node:crypto';
import { FIRST_FORMAT, UNFINISHED_COPY } from '../../domain/formats';
import { codeOf, moreOf, type Fault } from '../../fault';
import { isJsonObject } from '../../json';
import { isUuid } from '../../uuid';
import { logFault, type EventLog, type LoggedEvent, type Position } from '../event-log';
import type { StreamReader } from './stream-reader';

/** The log's own stream: its identity, and its format. */

/** The first event contains the identity. The first process to start writes it, once. */
const TYPE = 'LogMade';

interface Identity {
  readonly identity: string;
  /** Everything else in this log comes after this position. */
  readonly position: Position;
}

const notOurs = (stream: string): Fault =>
  logFault(
    'log_unavailable',
    `Stream ${stream} of the event store belongs to another program. Choose a STREAM_PREFIX.`,
    { isFinal: true, isForeign: true },
  );

/** The identity was deleted, or something else is in its place. */
const isGone = (error: unknown): boolean =>
  codeOf(error) === 'history_missing' || moreOf(error)['isForeign'] === true;

const identityIn = ({ type, revision, data, position }: LoggedEvent): Identity | undefined => {
  const identity = isJsonObject(data) ? data['identity'] : undefined;
  const isOurs = type === TYPE && revision === 0 && isUuid(identity);
  return isOurs ? { identity, position } : undefined;
};

/** Undefined if there is no log here. Throws if the stream belongs to another program. */
const writtenIdentity = async (reader: StreamReader, stream: string): Promise<Identity | undefined> => {
  for await (const [event] of reader.forwards(stream, -1)) {
    const found = event === undefined ? undefined : identityIn(event);
    if (found === undefined) throw notOurs(stream);
    return found;
  }
  return undefined;
};

interface NewLog {
  /** Thrown instead of creating the log. */
  readonly missingFault?: Fault | undefined;
  readonly format: number;
}

/** After the identity. Programs without formats read only the identity. */
const RAISED = 'LogFormatRaised';

const formatIn = ({ data }: LoggedEvent): number => {
  const format = isJsonObject(data) ? data['format'] : undefined;
  return Number.isSafeInteger(format) ? Number(format) : FIRST_FORMAT;
};

export const ownStream = (reader: StreamReader, append: EventLog['append'], stream: string) => {
  /** There is one event for each time the format was raised. */
  const readFormat = async () => {
    let format: number | undefined;
    let revision = -1;
    for await (const batch of reader.forwards(stream, -1))
      for (const event of batch) {
        format = Math.max(format ?? UNFINISHED_COPY, formatIn(event));
        revision = event.revision;
      }
    return { format: format ?? FIRST_FORMAT, revision };
  };

  return {
    findOrCreate: async ({ missingFault, format }: NewLog): Promise<Identity> => {
      const known = await writtenIdentity(reader, stream);
      if (known !== undefined) return known;
      if (missingFault !== undefined) throw missingFault;
      const event = { id: randomUUID(), type: TYPE, data: { identity: randomUUID(), format }, metadata: {} };
      await append(stream, [event], 'no_stream').catch((error: unknown) => {
        if (codeOf(error) !== 'stream_changed') throw error;
      });
      const created = await writtenIdentity(reader, stream);
      if (created === undefined) throw logFault('log_unavailable', `Stream ${stream} cannot be read.`);
      return created;
    },
    /** Undefined if the log was deleted or another program's stream is in its place. */
    identity: (): Promise<string | undefined> =>
      writtenIdentity(reader, stream).then(
        (found) => found?.identity,
        (error: unknown) => {
          if (!isGone(error)) throw error;
          return undefined;
        },
      ),
    format: async (): Promise<number> => (await readFormat()).format,
    raiseFormat: async (to: number): Promise<void> => {
      for (;;) {
        const { format, revision } = await readFormat();
        if (format >= to) return;
        const event = { id: randomUUID(), type: RAISED, data: { format: to }, metadata: {} };
        try {
          return void (await append(stream, [event], revision));
        } catch (error) {
          // Another process has raised it in the meantime.
          if (codeOf(error) !== 'stream_changed') throw error;
        }
      }
    },
  };
};
