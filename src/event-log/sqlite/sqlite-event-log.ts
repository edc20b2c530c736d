import { yieldToEventLoop } from '../../async/clock';
import type { Outcome, Thread } from '../../async/thread';
import { codeOf, fault, messageOf } from '../../fault';
import * as sqlite from '../../sqlite/database';
import { TIMES } from '../../times';
import {
  appendUntilCertain,
  mustBeAppendable,
  type Appended,
  type EventLog,
  type Expected,
  type Head,
  type NewEvent,
} from '../event-log';
import type { Streams } from '../streams';
import * as logFile from './log-file';
import { eventReader, positionOf, readOrFault, rowIdOf } from './reader';

/** An append as sent to the writing thread, already serialized. */
export interface AppendRequest {
  readonly stream: string;
  readonly expected: Expected;
  readonly events: readonly AppendedRow[];
}

interface AppendedRow {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
  readonly recordedAt?: number;
}

/** The file to append to, and the prefix of its streams. */
export interface AppenderFile {
  readonly path: string;
  readonly prefix: string;
}

/** What is asked of who appends. `open`: so that a start finds out whether it can. */
export type AppenderRequest = { readonly type: 'open' } | ({ readonly type: 'append' } & AppendRequest);

const replaced = (path: string) =>
  fault(
    'log_set_back',
    `The file ${path} was replaced or removed while it was open. Restart the service on the right one.`,
  );

/** Appends or refuses one request, in a transaction of the caller. */
const appendIn = (db: sqlite.Database) => {
  const last = db.prepare('SELECT revision FROM events WHERE stream = ? ORDER BY revision DESC LIMIT 1');
  const stored = db.prepare(
    'SELECT id, revision, position FROM events WHERE stream = ? AND revision > ? ORDER BY revision LIMIT ?',
  );
  const insert = db.prepare(
    'INSERT INTO events (stream, revision, id, type, data, metadata, recorded_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );

  const answerRepeated = (request: AppendRequest, expected: number, actual: number): Outcome => {
    const rows = stored.all(request.stream, expected, request.events.length) as {
      id: string;
      revision: number;
      position: number;
    }[];
    const isRepeated =
      rows.length === request.events.length && rows.every((row, i) => row.id === request.events[i]?.id);
    const final = rows.at(-1);
    if (isRepeated && final !== undefined)
      return { value: { revision: final.revision, position: positionOf(final.position) } };
    return { error: fault('stream_changed', `Stream ${request.stream} has changed.`, { actual }) };
  };

  return (request: AppendRequest, now: number): Outcome => {
    const expected = request.expected === 'no_stream' ? -1 : request.expected;
    const actual = (last.get(request.stream) as { revision: number } | undefined)?.revision ?? -1;
    if (actual !== expected) return answerRepeated(request, expected, actual);
    let position = 0;
    request.events.forEach(({ id, type, data, metadata, recordedAt = now }, i) => {
      const revision = expected + 1 + i;
      const done = insert.run(request.stream, revision, id, type, data, metadata, recordedAt);
      position = Number(done.lastInsertRowid);
    });
    return { value: { revision: expected + request.events.length, position: positionOf(position) } };
  };
};

/** Answers requests to append. */
export interface AppendingBody {
  readonly db: sqlite.Database;
  /** Appends or refuses each request as a whole, and commits all of them in one durable transaction. */
  answer(requests: readonly AppenderRequest[]): readonly Outcome[];
  isRetried(error: unknown): boolean;
  close(): void;
}

/**
 * It never creates the log: one that has disappeared must not come back empty. In a thread of its own it tries a locked
 * file again between other requests; elsewhere it waits for the lock.
 */
export const appending = ({ path, prefix }: AppenderFile, inOwnThread = true): AppendingBody => {
  logFile.mustBeOurLog(path, prefix);
  const db = logFile.openForAppending(path);
  if (inOwnThread) sqlite.neverWait(db);
  const isStillThere = sqlite.stillThere(path);
  const append = appendIn(db);

  const appendTogether = (requests: readonly AppendRequest[]): readonly Outcome[] => {
    const now = Date.now();
    return sqlite.inTransaction(db, () => requests.map((request) => append(request, now)));
  };

  /** A request that cannot be stored fails the transaction of its group. Then each gets a transaction of its own. */
  const appendAll = (requests: readonly AppendRequest[]): readonly Outcome[] => {
    try {
      return appendTogether(requests);
    } catch (error) {
      if (requests.length === 1 || sqlite.isBusy(error) || codeOf(error) === 'commit_failed')
        return requests.map(() => ({ error }));
      return requests.flatMap((request) => appendAll([request]));
    }
  };

  return {
    db,
    answer: (requests) => {
      const appends = requests.filter((request) => request.type === 'append');
      const outcomes = appends.length === 0 ? [] : [...appendAll(appends)];
      // Checked after the commit, so that whatever is acknowledged is in the file that the path names now.
      if (!isStillThere()) return requests.map(() => ({ error: replaced(path) }));
      return requests.map(({ type }) => (type === 'open' ? { value: true } : (outcomes.shift() as Outcome)));
    },
    isRetried: (error) => inOwnThread && sqlite.isBusy(error),
    close: () => sqlite.checkpointAndClose(db),
  };
};

/** Conclusive answers of the appending thread. Anything else is a problem with the file. */
const CONCLUSIVE = new Set<string | undefined>(['stream_changed', 'no_answer', 'log_set_back']);

const serialised = (event: NewEvent) => ({
  id: event.id.toLowerCase(),
  type: event.type,
  data: JSON.stringify(event.data),
  metadata: JSON.stringify(event.metadata),
  ...(event.recordedAt === undefined ? {} : { recordedAt: Date.parse(event.recordedAt) }),
});

interface SqliteOptions {
  readonly opening?: logFile.Opening;
  /** What writes to the file. By default this thread does, with the first append. */
  readonly appender?: Thread | undefined;
}

/** Each append has a turn of the event loop of its own, which it may block. */
const appendingHere = (file: AppenderFile): Thread => {
  let appender: AppendingBody | undefined;
  let isClosed = false;
  return {
    call: async <T>(request: unknown): Promise<T> => {
      await yieldToEventLoop();
      if (isClosed) throw fault('expired', 'The log is closed.');
      const [outcome] = (appender ??= appending(file, false)).answer([request as AppenderRequest]);
      if (outcome !== undefined && 'value' in outcome) return outcome.value as T;
      throw outcome?.error;
    },
    close: async () => {
      if (!isClosed) appender?.close();
      isClosed = true;
    },
  };
};

/** One attempt. Rejects with `no_answer` if the outcome is unknown. */
const attempting =
  ({ call }: Thread, request: AppenderRequest) =>
  (withinMs: number): Promise<Appended> =>
    call<Appended>(request, withinMs).catch((error: unknown) => {
      const code = codeOf(error);
      if (CONCLUSIVE.has(code)) throw error;
      // Repeating the append writes the events, or finds them.
      if (code === 'commit_failed') throw fault('no_answer', messageOf(error));
      throw logFile.unavailable('The append failed', error);
    });

/** Another number after each commit of another connection; undefined if the file cannot be read. */
const changeTokenOf = (db: sqlite.Database): (() => number | undefined) => {
  const statement = db.prepare('PRAGMA data_version');
  statement.setReturnArrays(true);
  return () => {
    try {
      return (statement.get() as unknown as [number])[0];
    } catch {
      return undefined;
    }
  };
};

/** Everything but reading and appending events. */
const logQueries = (db: sqlite.Database, path: string) => {
  const isStillThere = sqlite.stillThere(path);
  const last = db.prepare('SELECT position, id FROM events ORDER BY position DESC LIMIT 1');
  const idAt = db.prepare('SELECT id FROM events WHERE position = ?');
  const identity = (): string | undefined => logFile.metaIn(db, 'identity');
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
  { opening = 'create', appender: given }: SqliteOptions = {},
): Promise<EventLog> => {
  const path = logFile.logPath(folder);
  const { prefix } = streams;
  const appender = given ?? appendingHere({ path, prefix });
  try {
    logFile.ensureLog(path, prefix, opening);
    if (opening !== 'read')
      await appender.call({ type: 'open' } satisfies AppenderRequest, TIMES.backgroundMs);
  } catch (error) {
    await appender.close();
    throw logFile.notOpened(path, error);
  }

  const db = sqlite.openForReading(path);
  const changeToken = changeTokenOf(db);
  const closing = new AbortController();
  const read = eventReader(db, { token: changeToken, closing: closing.signal });

  return {
    ...logQueries(db, path),
    changeToken,
    append: async (stream, events, expected, withinMs = TIMES.appendMs) => {
      const request = { type: 'append', stream, expected, events: events.map(serialised) } as const;
      mustBeAppendable(events, request.events);
      return appendUntilCertain(attempting(appender, request), withinMs);
    },
    readStream: (stream, after = -1) => read.stream(stream, after),
    revisionAt: read.revisionAt,
    readTenant: (tenantId, from = {}) =>
      read.merged({ tenant: streams.tenant(tenantId), activity: streams.activity(tenantId) }, from),
    readAll: (from = {}) => read.all(from),
    completeCopy: () => logFile.completeCopy(path),
    distance: async (after, upTo) => Math.max(0, rowIdOf(upTo) - rowIdOf(after)),
    close: async () => {
      closing.abort();
      if (db.isOpen) db.close();
      await appender.close();
    },
  };
};
