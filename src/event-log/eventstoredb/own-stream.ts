import { randomUUID } from 'node:crypto';
import { FIRST_FORMAT, UNFINISHED_COPY } from '../../domain/formats';
import { codeOf, moreOf, type Fault } from '../../fault';
import { isJsonObject } from '../../json';
import { isUuid } from '../../uuid';
import {
  logFault,
  type Continuity,
  type EventLog,
  type Head,
  type LoggedEvent,
  type Position,
} from '../event-log';
import type { StreamReader } from './stream-reader';
import type { WholeLog } from './whole-log';

/** The log's own stream: its identity, and its format. */

/** The first event contains the identity. The first process to start writes it, once. */
const TYPE = 'LogMade';

export interface Identity {
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

export const identityOf = async (
  reader: StreamReader,
  append: EventLog['append'],
  stream: string,
  { missingFault, format }: NewLog,
): Promise<Identity> => {
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
};

interface OpenedLog {
  readonly reader: StreamReader;
  readonly log: WholeLog;
  /** The name of the stream with its identity. */
  readonly stream: string;
  readonly identity: string;
}

/** Undefined if the log was deleted or another program's stream is in its place. */
const identityNow = ({ reader, stream }: OpenedLog): Promise<string | undefined> =>
  writtenIdentity(reader, stream).then(
    (found) => found?.identity,
    (error: unknown) => {
      if (!isGone(error)) throw error;
      return undefined;
    },
  );

/**
 * Uses the end of the whole server, since our last event may have been scavenged. Reads it before the event, so that a
 * log that was set back cannot grow past the event in between.
 */
export const continuityOf =
  (opened: OpenedLog) =>
  async (known?: Head): Promise<Continuity> => {
    if ((await identityNow(opened)) !== opened.identity) return 'replaced';
    if (known === undefined) return 'whole';
    const end = await opened.log.end();
    const found = await opened.log.at(known.position);
    if (found?.id === known.eventId) return 'whole';
    return found === undefined && end >= known.position ? 'missing' : 'set_back';
  };

/** After the identity. Programs without formats read only the identity. */
const RAISED = 'LogFormatRaised';

const formatIn = ({ data }: LoggedEvent): number => {
  const format = isJsonObject(data) ? data['format'] : undefined;
  return Number.isSafeInteger(format) ? Number(format) : FIRST_FORMAT;
};

/** There is one event for each time the format was raised. */
export const formatOf = (
  reader: StreamReader,
  append: EventLog['append'],
  stream: string,
): Pick<EventLog, 'format' | 'raiseFormat'> => {
  const read = async () => {
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
    format: async () => (await read()).format,
    raiseFormat: async (to) => {
      for (;;) {
        const { format, revision } = await read();
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
