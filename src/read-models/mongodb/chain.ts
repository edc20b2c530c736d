import type { ClientSession } from 'mongodb';
import type { MongoConnection } from '../../mongodb/connection';
import type { Position } from '../../event-log/event-log';
import { withGatesClosed, type HeldGates } from './gates';
import { ABSENT, controlsIn, IS_OPEN, rootsIn, setOfCollection, type StoredControl } from './layout';
import { findControl, findRoot } from './set-reader';
import { transactAgain } from './transactions';

/** The ids from the root to the end. Undefined: the root leads nowhere. */
const wayOf = async (
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

const positionOf = (head: { readonly position: string } | undefined): string => head?.position ?? '';

/**
 * The only switch. The transaction writes the new set too, even though nothing of it changes, so that it conflicts with a
 * removal of that set. An outcome is found again when the transaction is repeated.
 */
export const switching = (connection: MongoConnection, version: string) => {
  const controls = controlsIn(connection);
  const roots = rootsIn(connection);
  const touch = (id: string, session: ClientSession): Promise<StoredControl | null> =>
    controls.findOneAndUpdate({ _id: id, removed: ABSENT }, { $inc: { touched: 1 } }, { session });

  const nameFirst = async (first: string, session: ClientSession): Promise<true | undefined> => {
    const way = await wayOf(connection, version, session);
    if (way !== undefined && way.size > 0) return way.has(first) ? true : undefined;
    if ((await touch(first, session)) === null) return undefined;
    await roots.updateOne({ _id: version }, { $set: { live: first } }, { session, upsert: true });
    return true;
  };
  const nameNext = async (
    [built, former]: readonly [string, string],
    { furthest, keepClosed }: HeldGates,
    evenIfBehind: boolean,
    session: ClientSession,
  ): Promise<true | undefined> => {
    const update = { $set: { next: built }, $currentDate: { superseded_at: true as const } };
    const left = await controls.findOneAndUpdate({ _id: former, ...IS_OPEN }, update, { session });
    const mine = left === null ? null : await touch(built, session);
    if (left === null || mine === null) return undefined;
    const isBehind = [left.to, furthest].some((head) => positionOf(mine.to) < positionOf(head));
    if (isBehind && !evenIfBehind) return undefined;
    return (await keepClosed(session)) ? true : undefined;
  };
  const isNext = async (built: string, former: string): Promise<boolean> =>
    (await findControl(connection, former))?.next === built;

  return async (
    built: string,
    former: string | undefined,
    /** Called just before it is named. */
    follow: (furthest: Position | undefined) => Promise<void>,
    evenIfBehind: boolean,
  ): Promise<boolean> => {
    if (former === undefined) {
      await follow(undefined);
      return (await transactAgain(connection, (session) => nameFirst(built, session))) === true;
    }
    const name = async (held: HeldGates): Promise<unknown> => {
      await follow(held.furthest?.position);
      const naming = (session: ClientSession) => nameNext([built, former], held, evenIfBehind, session);
      return transactAgain(connection, naming);
    };
    try {
      await withGatesClosed(connection, former, name);
    } catch (error) {
      if (!(await isNext(built, former).catch(() => false))) throw error;
    }
    if (!(await isNext(built, former))) return false;
    await moveRoot(connection, version, former, built);
    return true;
  };
};

/**
 * Drops the collections of sets that do not exist: of a removed one, or what a suspended builder wrote after that. Lists
 * them first, since a set has its control document before it has collections.
 */
const dropOrphans = async (connection: MongoConnection): Promise<void> => {
  const { db } = connection;
  const listed = await db.listCollections({}, { nameOnly: true }).toArray();
  const sets = new Set(await controlsIn(connection).distinct('_id'));
  for (const { name } of listed) {
    const id = setOfCollection(name);
    if (id !== undefined && !sets.has(id)) await db.dropCollection(name);
  }
};

/**
 * False: it is in use, or was until a moment ago. Writes the mark first, so that the set cannot become a successor while
 * the way is walked. Where the way is broken, by this mark or before, nothing goes.
 */
export const removeSet = async (
  connection: MongoConnection,
  id: string,
  graceMs: number,
): Promise<boolean> => {
  const controls = controlsIn(connection);
  const age = { $subtract: ['$$NOW', { $ifNull: ['$superseded_at', '$renewed_at'] }] };
  const old = { _id: id, $expr: { $gte: [age, graceMs] } };
  const isMarked = await transactAgain(connection, async (session) => {
    const found = await controls.findOneAndUpdate(old, { $set: { removed: true } }, { session });
    const way = found === null ? undefined : await wayOf(connection, found.version, session);
    return way === undefined ? undefined : true;
  });
  if (isMarked !== true && (await findControl(connection, id)) !== null) return false;
  await controls.deleteOne({ _id: id });
  await dropOrphans(connection);
  return true;
};
