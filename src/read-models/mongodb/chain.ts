import type { ClientSession } from 'mongodb';
import type { MongoConnection } from '../../mongodb/connection';
import { ABSENT, controlsIn, rootsIn, type StoredControl } from './layout';
import { findControl, findRoot } from './set-reader';
import type { Transactions } from './transactions';

/** The ids from the root to the end. Undefined: the root leads nowhere. */
export const wayOf = async (
  connection: MongoConnection,
  version: string,
  session: ClientSession,
): Promise<ReadonlySet<string> | undefined> => {
  const way = new Set<string>();
  let at = (await rootsIn(connection).findOne({ _id: version }, { session }))?.live;
  while (at !== undefined) {
    const step: StoredControl | null = await controlsIn(connection).findOne({ _id: at }, { session });
    if (step === null || step.removed === true) return undefined;
    way.add(at);
    at = step.next;
  }
  return way;
};

/** Moves it by one step along the chain, so that it never goes back. */
const moveRoot = async (connection: MongoConnection, version: string, from: string, next: string) => {
  await rootsIn(connection).updateOne({ _id: version, live: from }, { $set: { live: next } });
};

/** Finds the control state of the live set from the set that was live last, or else from the root. */
export const liveFinder = (connection: MongoConnection, version: string) => {
  let known: string | undefined;
  const endFrom = async (start: string | undefined): Promise<StoredControl | undefined> => {
    let id = start;
    while (id !== undefined) {
      const found: StoredControl | null = await findControl(connection, id);
      if (found === null || found.removed === true) return undefined;
      known = id;
      if (found.next === undefined) return found;
      await moveRoot(connection, version, id, found.next);
      id = found.next;
    }
    return undefined;
  };
  return async (): Promise<StoredControl | undefined> => {
    let found = await endFrom(known);
    let before: string | undefined;
    while (found === undefined) {
      const root = await findRoot(connection, version);
      if (root === undefined || root === before) return undefined;
      found = await endFrom(root);
      before = root;
    }
    return found;
  };
};

const positionOf = ({ to }: StoredControl): string => to?.position ?? '';

/**
 * The only switch. The transaction writes the new set too, even though nothing of it changes, so that it conflicts with a
 * removal of that set. An outcome is found again when the transaction is repeated.
 */
export const switching = (connection: MongoConnection, version: string, transactions: Transactions) => {
  const [controls, roots] = [controlsIn(connection), rootsIn(connection)];
  const touch = (id: string, session: ClientSession): Promise<StoredControl | null> =>
    controls.findOneAndUpdate({ _id: id, removed: ABSENT }, { $inc: { touched: 1 } }, { session });

  const begin = async (first: string, session: ClientSession): Promise<true | undefined> => {
    const way = await wayOf(connection, version, session);
    if (way !== undefined && way.size > 0) return way.has(first) ? true : undefined;
    if ((await touch(first, session)) === null) return undefined;
    await roots.updateOne({ _id: version }, { $set: { live: first } }, { session, upsert: true });
    return true;
  };
  const follow = async (
    [built, former]: readonly [string, string],
    evenIfBehind: boolean,
    session: ClientSession,
  ): Promise<true | undefined> => {
    const left = await controls.findOne({ _id: former, removed: ABSENT }, { session });
    if (left?.next === built) return true;
    const mine = await touch(built, session);
    if (left === null || left.next !== undefined || mine === null) return undefined;
    if (positionOf(mine) < positionOf(left) && !evenIfBehind) return undefined;
    const update = { $set: { next: built }, $currentDate: { superseded_at: true as const } };
    await controls.updateOne({ _id: former }, update, { session });
    return true;
  };
  return async (built: string, former: string | undefined, evenIfBehind: boolean): Promise<boolean> => {
    if (former === undefined) return (await transactions.run((session) => begin(built, session))) === true;
    const isDone = await transactions.run((session) => follow([built, former], evenIfBehind, session));
    if (isDone === true) await moveRoot(connection, version, former, built);
    return isDone === true;
  };
};
