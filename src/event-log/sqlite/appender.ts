import { codeOf } from '../../fault';
import {
  checkpointAndClose,
  inTransaction,
  isBusy,
  neverWait,
  stillThere,
  type Database,
} from '../../sqlite/database';
import type { Outcome, ThreadBody } from '../../async/thread';
import { logFault, type Expected } from '../event-log';
import { mustBeOurLog, openForAppending } from './log-file';
import { positionOf } from './reader';

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

/** Opens the appender: so that a start finds out whether it can. */
export const READY = 'ready';

const replaced = (path: string) =>
  logFault(
    'log_set_back',
    `The file ${path} was replaced or removed while it was open. Restart the service on the right one.`,
  );

interface Appender {
  readonly db: Database;
  /** Appends or refuses each request as a whole, and commits all of them in one durable transaction. */
  appendGroup(requests: readonly AppendRequest[]): readonly Outcome[];
  close(): void;
}

/** Appends or refuses one request, in a transaction of the caller. */
const appendIn = (db: Database) => {
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
    return { error: logFault('stream_changed', `Stream ${request.stream} has changed.`, { actual }) };
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

export const openAppender = (path: string): Appender => {
  const db = openForAppending(path);
  const isStillThere = stillThere(path);
  const append = appendIn(db);

  const appendTogether = (requests: readonly AppendRequest[]): readonly Outcome[] => {
    const now = Date.now();
    return inTransaction(db, () => requests.map((request) => append(request, now)));
  };

  /** A request that cannot be stored fails the transaction of its group. Then each gets a transaction of its own. */
  const appendAll = (requests: readonly AppendRequest[]): readonly Outcome[] => {
    try {
      return appendTogether(requests);
    } catch (error) {
      if (requests.length === 1 || isBusy(error) || codeOf(error) === 'commit_failed')
        return requests.map(() => ({ error }));
      return requests.flatMap((request) => appendAll([request]));
    }
  };

  return {
    db,
    appendGroup: (requests) => {
      const outcomes = appendAll(requests);
      // Checked after the commit, so that whatever is acknowledged is in the file that the path names now.
      return isStillThere() ? outcomes : requests.map(() => ({ error: replaced(path) }));
    },
    close: () => checkpointAndClose(db),
  };
};

/**
 * Answers requests to append. It never creates the log: one that has disappeared must not come back empty. In a thread
 * of its own it tries a locked file again between other requests; elsewhere it waits for the lock.
 */
export const appending = ({ path, prefix }: AppenderFile, inOwnThread = true): ThreadBody => {
  mustBeOurLog(path, prefix);
  const appender = openAppender(path);
  if (inOwnThread) neverWait(appender.db);
  return {
    answer: async (requests) => {
      const appends = requests.filter((request) => request !== READY) as AppendRequest[];
      const outcomes = appends.length === 0 ? [] : [...appender.appendGroup(appends)];
      return requests.map((request) => (request === READY ? { value: true } : (outcomes.shift() as Outcome)));
    },
    isRetried: (error) => inOwnThread && isBusy(error),
    close: appender.close,
  };
};
