import type { ClientSession } from 'mongodb';
import { beforeDeadline, monotonicMs } from '../../async/clock';
import { repeated } from '../../async/repeated';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';

type Work<T> = (session: ClientSession) => Promise<T | undefined>;

const hasLabel = (error: unknown, label: string): boolean =>
  ((error as { errorLabels?: readonly string[] }).errorLabels ?? []).includes(label);

const hasCode = (error: unknown, code: number): boolean => (error as { code?: unknown }).code === code;

/** It did not end within its `maxTimeMS`. */
export const isTooLate = (error: unknown): boolean => hasCode(error, 50);

export const isDuplicate = (error: unknown): boolean => hasCode(error, 11_000);

/** Nothing was written: another transaction has written the same, or this one was ended. */
export const isConflict = (error: unknown): boolean =>
  hasLabel(error, 'TransientTransactionError') || isDuplicate(error);

/** Tells what has become of a commit whose answer was lost. */
const commit = (session: ClientSession, deadline: number): Promise<void> =>
  repeated(
    () => session.commitTransaction(),
    (error) =>
      hasLabel(error, 'UnknownTransactionCommitResult') && monotonicMs() < deadline
        ? TIMES.busyRetryMs
        : undefined,
  );

const inTransaction = async <T>(session: ClientSession, work: Work<T>, deadline: number) => {
  session.startTransaction({ readConcern: { level: 'snapshot' } });
  try {
    const result = await work(session);
    if (result !== undefined) await commit(session, deadline);
    return result;
  } finally {
    if (session.inTransaction()) await session.abortTransaction();
  }
};

/**
 * Commits what `work` did, or aborts it if `work` returns undefined. Ends within a time, so that whoever meets an older
 * transaction knows that its process is gone. `isConflict` of an error: nothing was written.
 */
export const transact = async <T>(
  { db, place }: MongoConnection,
  work: Work<T>,
  reading?: ClientSession,
): Promise<T | undefined> => {
  const session = db.client.startSession();
  const deadline = monotonicMs() + TIMES.transactionMs;
  const late = () => fault('read_models_unavailable', `MongoDB at ${place} did not answer in time.`);
  try {
    const result = await beforeDeadline(inTransaction(session, work, deadline), deadline, late);
    if (session.operationTime !== undefined) reading?.advanceOperationTime(session.operationTime);
    return result;
  } finally {
    void session.endSession().catch(() => undefined);
  }
};

const MAX_ATTEMPTS = 10;

/** Repeats it after a conflict. */
export const transactAgain = <T>(connection: MongoConnection, work: Work<T>): Promise<T | undefined> =>
  repeated(
    () => transact(connection, work),
    (error, failures) =>
      failures < MAX_ATTEMPTS && isConflict(error) ? Math.min(50, 2 ** failures) : undefined,
  );

/**
 * Ends the sessions of this user whose transactions are older than any can be whose process is at work. Otherwise the
 * server would keep what they have written locked for a minute.
 */
export const endDeadTransactions = async ({ db }: MongoConnection): Promise<void> => {
  const isOld = { 'transaction.timeOpenMicros': { $gt: TIMES.conflictMs * 1_000 } };
  const pipeline = [{ $currentOp: { idleSessions: true, allUsers: false } }, { $match: isOld }];
  const options = { readConcern: { level: 'local' } } as const;
  const found = await db.client.db('admin').aggregate<{ lsid: { id: unknown } }>(pipeline, options).toArray();
  if (found.length === 0) return;
  await db.admin().command({ killSessions: found.map(({ lsid }) => ({ id: lsid.id })) });
};
