import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf, fault, messageOf } from '../../fault';
import { dataVersion, openForReading, stillThere, type Database } from '../../sqlite/database';
import { answerInPlace, type Thread } from '../../async/thread';
import {
  LOG_FORMAT,
  logFault,
  mustBeAppendable,
  mustHaveFormat,
  UNFINISHED_COPY,
  type Appended,
  type EventLog,
  type Head,
  type NewEvent,
} from '../event-log';
import { appendUntilCertain } from '../append';
import type { Streams } from '../streams';
import { appending, READY, type AppenderFile, type AppendRequest } from './appender';
import { createLog, findLog, mustBeOurLog, logMissing, logPath, metaIn, setFormat } from './log-file';
import { eventReader, positionOf, readOrFault, rowIdOf } from './reader';
import { tail } from './tail';
import { TIMES } from '../../times';

/** Conclusive answers of the appending thread. Anything else is a problem with the file. */
const CONCLUSIVE: ReadonlySet<string | undefined> = new Set(['stream_changed', 'no_answer', 'log_set_back']);

const serialised = (event: NewEvent) => ({
  id: event.id.toLowerCase(),
  type: event.type,
  data: JSON.stringify(event.data),
  metadata: JSON.stringify(event.metadata),
  ...(event.recordedAt === undefined ? {} : { recordedAt: Date.parse(event.recordedAt) }),
});

/**
 * `read`: nothing is opened for writing until the first append, and the log must exist. `write`: the log must exist.
 * `create`: the log is created if there is none. `copy`: the same for the target of a copy, which must be unfinished.
 */
export type Opening = 'read' | 'write' | 'create' | 'copy';

interface SqliteOptions {
  readonly opening?: Opening;
  /** What writes to the file. By default this thread does, with the first append. */
  readonly appender?: ((file: AppenderFile) => Thread) | undefined;
}

const ownCodes: ReadonlySet<string | undefined> = new Set([
  'copy_refused',
  'log_incomplete',
  'log_of_another_prefix',
  'log_of_newer_program',
]);

const notOpened = (path: string, error: unknown): unknown =>
  ownCodes.has(codeOf(error))
    ? error
    : logFault('log_unavailable', `The event log ${path} cannot be opened: ${messageOf(error)}`);

/** Checks what exists before anything is written. */
const ensureLog = (path: string, prefix: string, opening: Opening): void => {
  const isCopy = opening === 'copy';
  if (findLog(path) === 'absent') {
    if (opening !== 'create' && !isCopy) throw logMissing(path);
    mkdirSync(dirname(path), { recursive: true });
    createLog(path, prefix, isCopy ? UNFINISHED_COPY : LOG_FORMAT);
  }
  mustHaveFormat(mustBeOurLog(path, prefix), path, isCopy);
};

const appendingHere = (file: AppenderFile): Thread => answerInPlace(() => appending(file, false));

/** One attempt. Rejects with `no_answer` if the outcome is unknown. */
const attempting =
  ({ call }: Thread, request: AppendRequest) =>
  (withinMs: number): Promise<Appended> =>
    call<Appended>(request, withinMs).catch((error: unknown) => {
      const code = codeOf(error);
      if (CONCLUSIVE.has(code)) throw error;
      // Repeating the append writes the events, or finds them.
      if (code === 'commit_failed') throw fault('no_answer', messageOf(error));
      throw logFault('log_unavailable', `The append failed: ${messageOf(error)}`);
    });

const completeCopy = async (path: string): Promise<void> => {
  try {
    setFormat(path, LOG_FORMAT);
  } catch (error) {
    throw logFault('log_unavailable', `The event log ${path} cannot be written: ${messageOf(error)}`);
  }
};

/** Everything but reading and appending events. */
const logQueries = (db: Database, path: string) => {
  const isStillThere = stillThere(path);
  const last = db.prepare('SELECT position, id FROM events ORDER BY position DESC LIMIT 1');
  const idAt = db.prepare('SELECT id FROM events WHERE position = ?');
  const identity = (): string | undefined => metaIn(db, 'identity');
  const head = (): Head | undefined => {
    const row = last.get() as { position: number; id: string } | undefined;
    return row === undefined ? undefined : { position: positionOf(row.position), eventId: row.id };
  };
  const openedIdentity = identity();

  return {
    identity: async () => readOrFault(identity) ?? '',
    head: async () => readOrFault(head),
    continuity: async (known) =>
      readOrFault(() => {
        if (!isStillThere() || identity() !== openedIdentity) return 'replaced';
        if (known === undefined) return 'whole';
        const end = head()?.position ?? '';
        const found = (idAt.get(rowIdOf(known.position)) as { id: string } | undefined)?.id;
        if (found === known.eventId) return 'whole';
        return found === undefined && end >= known.position ? 'missing' : 'set_back';
      }),
  } satisfies Partial<EventLog>;
};

/** The event log in one SQLite file, `events.db`, in a folder that several processes may share. */
export const sqliteEventLog = async (
  folder: string,
  streams: Streams,
  { opening = 'create', appender: appenderOf = appendingHere }: SqliteOptions = {},
): Promise<EventLog> => {
  const path = logPath(folder);
  const { prefix } = streams;
  const appender = appenderOf({ path, prefix });
  try {
    ensureLog(path, prefix, opening);
    if (opening !== 'read') await appender.call(READY, TIMES.backgroundMs);
  } catch (error) {
    await appender.close();
    throw notOpened(path, error);
  }

  const db = openForReading(path);
  const version = dataVersion(db);
  const changeToken = (): number | undefined => {
    try {
      return version();
    } catch {
      return undefined;
    }
  };
  const changes = tail(changeToken);
  const read = eventReader(db, changes);

  return {
    ...logQueries(db, path),
    changeToken,
    append: async (stream, events, expected, withinMs = TIMES.appendMs) => {
      const request = { stream, expected, events: events.map(serialised) };
      mustBeAppendable(events, request.events);
      return appendUntilCertain(attempting(appender, request), withinMs);
    },
    readStream: (stream, after = -1) => read.stream(stream, after),
    revisionAt: async (stream, position) => read.revisionAt(stream, position),
    readTenant: (tenantId, { after, signal } = {}) =>
      read.merged([streams.tenant(tenantId), streams.activity(tenantId)], { after, signal }),
    readAll: (from = {}) => read.all(from),
    completeCopy: () => completeCopy(path),
    distance: async (after, upTo) => Math.max(0, rowIdOf(upTo) - rowIdOf(after)),
    close: async () => {
      changes.close();
      if (db.isOpen) db.close();
      await appender.close();
    },
  };
};
