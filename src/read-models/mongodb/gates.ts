import type { ClientSession, Filter, UpdateFilter } from 'mongodb';
import { randomBytes } from 'node:crypto';
import { pause } from '../../async/clock';
import type { Head } from '../../event-log/event-log';
import type { MongoConnection } from '../../mongodb/connection';
import { TIMES } from '../../times';
import { furtherOf } from '../read-models';
import { ABSENT, FIRST_GATE, GATES, gatesIn, isOpen, isWithin, type StoredGate } from './layout';
import { findControl } from './set-reader';
import { endDeadTransactions, isTooLate } from './transactions';

const ALL = { $in: [...GATES] };

/** Those that this switch has closed, unless it was made. */
const closedBy = (token: string) => ({ _id: ALL, closed_by: token, stays_closed: ABSENT });

const openGates = async (connection: MongoConnection, set: string, token: string): Promise<void> => {
  const opening = { $unset: { closed_by: 1 as const, closed_at: 1 as const } };
  await gatesIn(connection, set).updateMany(closedBy(token), opening);
};

/** Waits for the end of a switch, and opens the gates again if its process is gone. */
export const awaitSwitch = async (connection: MongoConnection, set: string, token: string): Promise<void> => {
  const atWork: object = { ...closedBy(token), _id: FIRST_GATE, ...isWithin('closed_at', TIMES.silentMs) };
  do await pause(TIMES.busyRetryMs);
  while ((await gatesIn(connection, set).findOne(atWork)) !== null);
  await openGates(connection, set, token);
};

/** Closes those of these that are open. Updates wait for transactions under way. */
const close = async (
  connection: MongoConnection,
  set: string,
  which: Filter<StoredGate>,
  closing: UpdateFilter<StoredGate>,
): Promise<number> => {
  for (;;)
    try {
      const options = { maxTimeMS: TIMES.noAnswerMs };
      const open = { ...which, closed_by: ABSENT };
      return (await gatesIn(connection, set).updateMany(open, closing, options)).matchedCount;
    } catch (error) {
      if (!isTooLate(error)) throw error;
      await endDeadTransactions(connection);
    }
};

/** What holds the gates of a set while its successor is named. */
export interface HeldGates {
  /** The furthest event that was ever committed. */
  readonly furthest: Head | undefined;
  /** In the transaction that names the successor. False: somebody has opened them. */
  keepClosed(session: ClientSession): Promise<boolean>;
}

/**
 * Runs the work while nobody can commit to the set, and opens it afterwards unless it has a successor by then. Undefined:
 * it has one already, or this process was taken for dead. Whoever closes the first gate closes the others.
 */
export const withGatesClosed = async <T>(
  connection: MongoConnection,
  set: string,
  work: (held: HeldGates) => Promise<T>,
): Promise<T | undefined> => {
  const gates = gatesIn(connection, set);
  const token = randomBytes(8).toString('hex');
  const now = { $currentDate: { closed_at: true } } as const;
  const closing = { $set: { closed_by: token } };
  while ((await close(connection, set, { _id: FIRST_GATE }, { ...closing, ...now })) === 0) {
    if (!isOpen(await findControl(connection, set))) return undefined;
    const closed = await gates.findOne({ _id: FIRST_GATE });
    if (closed === null) return undefined;
    if (closed.closed_by !== undefined) await awaitSwitch(connection, set, closed.closed_by);
  }
  let shown: Promise<unknown> = Promise.resolve();
  const showWork = (): void => {
    shown = gates.updateOne({ _id: FIRST_GATE, closed_by: token }, now).catch(() => undefined);
  };
  const timer = setInterval(showWork, TIMES.silentMs / 4);
  try {
    await close(connection, set, { _id: ALL }, closing);
    const closed = await gates.find(closedBy(token)).toArray();
    const furthest = closed.map((gate) => gate.furthest).reduce(furtherOf, undefined);
    const keepClosed: HeldGates['keepClosed'] = async (session) => {
      clearInterval(timer);
      await shown;
      const forever = { $set: { stays_closed: true as const } };
      const { matchedCount } = await gates.updateMany(closedBy(token), forever, { session });
      return matchedCount === GATES.length;
    };
    return await work({ furthest, keepClosed });
  } finally {
    clearInterval(timer);
    await openGates(connection, set, token).catch(() => undefined);
  }
};
