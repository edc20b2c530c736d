import type { ClientSession } from 'mongodb';
import { beforeDeadline, monotonicMs, pause } from '../../async/clock';
import { fault } from '../../fault';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';

type Work<T> = (session: ClientSession) => Promise<T | undefined>;

/** Transactions are short, so whoever has lost a conflict this often waits for a process that is gone. */
const MAX_ATTEMPTS = 10;

const REPEATABLE = new Set(['TransientTransactionError', 'UnknownTransactionCommitResult']);

const isRepeatable = (error: unknown): boolean =>
  ((error as { errorLabels?: readonly string[] }).errorLabels ?? []).some((label) => REPEATABLE.has(label));

const inTransaction = async <T>(session: ClientSession, work: Work<T>): Promise<T | undefined> => {
  session.startTransaction({ readConcern: { level: 'snapshot' } });
  try {
    const result = await work(session);
    if (result !== undefined) await session.commitTransaction();
    return result;
  } finally {
    if (session.inTransaction()) await session.abortTransaction();
  }
};

/**
 * The transactions of one process, one after the other, in one session: whoever finds the process gone can end that
 * session. Otherwise the server would keep the documents of an open transaction locked for a minute.
 */
export const transactionsOn = ({ db, place }: MongoConnection) => {
  const newSession = (): ClientSession => db.client.startSession({ causalConsistency: false });
  let session = newSession();
  let last: Promise<unknown> = Promise.resolve();

  const once = <T>(work: Work<T>): Promise<T | undefined> => {
    const used = session;
    const late = (): Error => {
      session = newSession();
      void used.endSession().catch(() => undefined);
      return fault('read_models_unavailable', `MongoDB at ${place} did not answer in time.`);
    };
    return beforeDeadline(inTransaction(used, work), monotonicMs() + TIMES.transactionMs, late);
  };
  const repeated = async <T>(work: Work<T>): Promise<T | undefined> => {
    for (let attempt = 1; ; attempt += 1)
      try {
        return await once(work);
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !isRepeatable(error)) throw error;
        await pause(Math.min(50, 2 ** attempt));
      }
  };
  return {
    /**
     * Commits what `work` did, or aborts it if `work` returns undefined. Repeats it after a conflict or an unknown outcome,
     * when the former attempt cannot be committed any more. So `work` must recognize that it was done before.
     */
    run: <T>(work: Work<T>): Promise<T | undefined> => {
      const mine = last.then(() => repeated(work));
      last = mine.catch(() => undefined);
      return mine;
    },
    /** As `killSessions` takes it. */
    sessionId: (): unknown => session.id,
    close: async (): Promise<void> => {
      await last;
      await session.endSession();
    },
  };
};

export type Transactions = ReturnType<typeof transactionsOn>;
