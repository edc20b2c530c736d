import { PROGRESS, PROGRESS_KEY } from '../../../projections/projector';
import type { AnyBulkWriteOperation, ClientSession, UpdateFilter } from 'mongodb';
import { monotonicMs, pause } from '../../async/clock';
import type { Head } from '../../event-log/event-log';
import { fault, messageOf } from '../../fault';
import { TIMES } from '../../times';
import {
  furtherOf,
  isFreedTooEarly,
  isSameProgress,
  marksChangedBy,
  type Advanced,
  type Progress,
  type ReadModelSet,
  type TenantCommit,
  type Write,
} from '../read-models';
import { awaitSwitch } from './gates';
import {
  ABSENT,
  controlsIn,
  FIRST_GATE,
  GATES,
  gatesIn,
  idOf,
  IS_OPEN,
  isOpen,
  storedHead,
  storingIn,
  type Stored,
  type StoredControl,
  type StoredGate,
} from './layout';
import { declaredIn, documentsIn, findControl, progressIn, textOfKey, type OpenSet } from './set-reader';
import { endDeadTransactions, isConflict, isDuplicate, transact } from './transactions';

/** A tenant of a group, with what is to be committed of it, if anything. */
interface Member {
  readonly tenantId: string;
  readonly before: Progress | undefined;
  readonly commit: TenantCommit | undefined;
}

const commitsOf = (members: readonly Member[]): readonly TenantCommit[] =>
  members.flatMap(({ commit }) => commit ?? []);

/** Whether a commit that frees a tenant would leave out what waits. */
const isTooEarly = ({ before, commit }: Member, to: Head | undefined): boolean =>
  commit !== undefined && isFreedTooEarly(before, commit, to);

/** What changes of the control state. Undefined: nothing. */
const controlChange = (
  members: readonly Member[],
  to: Head | undefined,
): UpdateFilter<StoredControl> | undefined => {
  const changes = members.map(({ before, commit }) => (commit ? marksChangedBy(before, commit) : 0));
  if (to === undefined && changes.every((change) => change === 0)) return undefined;
  const marks = changes.reduce((sum, change) => sum + change, 0);
  return { $inc: { marks }, ...(to && { $max: { to: storedHead(to) } }) };
};

/** Only if it is as before. */
const progressChange = (before: Progress | undefined, { tenantId, progress }: TenantCommit) => {
  const _id = idOf(tenantId, PROGRESS_KEY);
  const update = { $set: { doc: { ...progress } } };
  if (before === undefined) return { updateOne: { filter: { _id, doc: ABSENT }, update, upsert: true } };
  const { position, tenant, activity, parked } = before;
  const mark = parked ?? { event_id: ABSENT, since: ABSENT, program: ABSENT };
  const same = {
    'doc.position': position,
    'doc.tenant': tenant,
    'doc.activity': activity,
    'doc.parked.event_id': mark.event_id,
    'doc.parked.since': mark.since,
    'doc.parked.program': mark.program,
  };
  return { updateOne: { filter: { _id, ...same }, update } };
};

/** The progress of all members, and how far anything was ever committed, through this gate if it is open. */
const progressChanges = (
  members: readonly Member[],
  to: Head | undefined,
  gate: StoredGate['_id'],
): readonly AnyBulkWriteOperation<StoredGate>[] => {
  const furthest = commitsOf(members).reduce((most, { head }) => furtherOf(most, head), to);
  const update = { $inc: { n: 1 }, ...(furthest && { $max: { furthest: storedHead(furthest) } }) };
  const changes = members.flatMap(({ before, commit }) => (commit ? [progressChange(before, commit)] : []));
  return [...changes, { updateOne: { filter: { _id: gate, closed_by: ABSENT }, update } }];
};

/** By collection. In any order, so only the last write of each document counts. */
const documentChanges = (
  set: OpenSet,
  members: readonly Member[],
): readonly (readonly [string, AnyBulkWriteOperation<Stored>[]])[] => {
  const writes = commitsOf(members).flatMap((commit) => commit.writes);
  const changesIn = (name: string): readonly [string, AnyBulkWriteOperation<Stored>[]] => {
    const store = storingIn(declaredIn(set, name));
    const there = writes.filter(({ collection }) => collection === name);
    const old = new Set(there.filter(({ isNew }) => !isNew).map(textOfKey));
    const last = new Map(there.map((write) => [textOfKey(write), write]));
    const changeOf = ([id, { tenantId, key, document }]: readonly [string, Write]) => {
      const filter = { _id: idOf(tenantId, key) };
      if (document === undefined) return { deleteOne: { filter } };
      const replacement = store(tenantId, key, document);
      return old.has(id)
        ? { replaceOne: { filter, replacement, upsert: true } }
        : { insertOne: { document: replacement } };
    };
    return [name, Array.from(last, changeOf)];
  };
  return Array.from(new Set(writes.map(({ collection }) => collection)), changesIn);
};

const idsOf = (members: readonly Member[]) => members.map(({ tenantId }) => tenantId);

/** In a transaction, whether tenants of which nothing is written are as before. */
const areAsBefore = async (set: OpenSet, members: readonly Member[], options: object): Promise<boolean> => {
  if (members.length === 0) return true;
  const ids = idsOf(members).map((tenantId) => idOf(tenantId, PROGRESS_KEY));
  const asked = documentsIn(set, PROGRESS.name).find({ _id: { $in: ids } }, options);
  const found = new Map((await asked.toArray()).map(({ _id, doc }) => [_id.tenant, doc]));
  return members.every(({ tenantId, before }) =>
    isSameProgress(before, found.get(tenantId) as Progress | undefined),
  );
};

/**
 * Writes the progress first, on condition that it is as before, and a gate that is open: so whoever is too late writes
 * nothing else. Undefined: it is to be undone.
 */
const writing = (set: OpenSet, members: readonly Member[], to: Head | undefined, gate: StoredGate['_id']) => {
  const { connection, id, isBuild } = set;
  const unwritten = members.filter(({ commit }) => commit === undefined);
  const progress = progressChanges(members, to, gate);
  const documents = documentChanges(set, members);
  const renewal = isBuild ? { $currentDate: { renewed_at: true as const } } : undefined;
  const change = controlChange(members, to) ?? renewal;
  return async (session?: ClientSession): Promise<true | undefined> => {
    const options = session === undefined ? {} : { session };
    if (!(await areAsBefore(set, unwritten, options))) return undefined;
    const written = await gatesIn(connection, id).bulkWrite(progress, options);
    if (written.matchedCount + written.upsertedCount < progress.length) return undefined;
    if (change !== undefined) {
      const update = { ...change, ...renewal };
      const found = await controlsIn(connection).findOneAndUpdate({ _id: id, ...IS_OPEN }, update, options);
      if (found === null || members.some((member) => isTooEarly(member, found.to))) return undefined;
    }
    for (const [name, changes] of documents)
      await documentsIn(set, name)
        .bulkWrite(changes, { ...options, ordered: false })
        .catch((error: unknown) => {
          throw isDuplicate(error) ? fault('document_exists', messageOf(error)) : error;
        });
    return true;
  };
};

/** Finds the tenants that another transaction holds. If that is one whose process is gone, it is ended. */
const heldTenants = (set: OpenSet) => {
  let lookedAt = -Infinity;
  /** A transaction that is aborted at once. A conflict of a group does not say where it is. */
  const isHeld = async ({ before, commit }: Member): Promise<boolean> => {
    if (commit === undefined) return false;
    const write = async (session: ClientSession): Promise<undefined> => {
      await gatesIn(set.connection, set.id).bulkWrite([progressChange(before, commit)], { session });
    };
    try {
      await transact(set.connection, write);
      return false;
    } catch (error) {
      if (!isConflict(error)) throw error;
      return true;
    }
  };
  return async (members: readonly Member[]): Promise<readonly Member[]> => {
    const areHeld = await Promise.all(members.map(isHeld));
    const held = members.filter((_, i) => areHeld[i]);
    if (held.length > 0 && monotonicMs() - lookedAt > TIMES.retryMs) {
      lookedAt = monotonicMs();
      await endDeadTransactions(set.connection);
    }
    return held;
  };
};

/** Why a group was not written. */
const lookAt = async (set: OpenSet, members: readonly Member[]) => {
  const closed = { _id: { $in: [...GATES] }, closed_by: { $exists: true } };
  const [control, gate, progress] = await Promise.all([
    findControl(set.connection, set.id),
    gatesIn(set.connection, set.id).findOne(closed),
    progressIn(set)(idsOf(members)),
  ]);
  const isOvertaken = (member: Member, i: number): boolean =>
    !isSameProgress(member.before, progress[i]) || isTooEarly(member, control?.to);
  const overtaken = members.filter(isOvertaken);
  const unmoved = members.filter((member) => !overtaken.includes(member));
  return { isOpen: isOpen(control), closedBy: gate?.closed_by, overtaken, unmoved };
};

/** After an error, the progress tells. */
const isCommitted = async (set: OpenSet, members: readonly Member[]): Promise<boolean> => {
  const commits = commitsOf(members);
  const found = await progressIn(set)(commits.map(({ tenantId }) => tenantId)).catch(() => []);
  return commits.length > 0 && commits.every(({ progress }, i) => isSameProgress(progress, found[i]));
};

/**
 * In a transaction. Documents were loaded outside: they are as of the progress that was read before them, or that progress
 * has moved by now. False: nothing was written.
 */
const isWritten = async (
  set: OpenSet,
  members: readonly Member[],
  to: Head | undefined,
): Promise<boolean> => {
  const { connection, reading, usedGates } = set;
  const free = GATES.filter((one) => !usedGates.has(one));
  const gate = free[Math.floor(Math.random() * free.length)] ?? FIRST_GATE;
  usedGates.add(gate);
  try {
    return (await transact(connection, writing(set, members, to, gate), reading)) === true;
  } catch (error) {
    if (isConflict(error)) return false;
    if (await isCommitted(set, members)) return true;
    throw error;
  } finally {
    usedGates.delete(gate);
  }
};

/** An advance of a set that any number of processes write to, and what has become of its tenants. */
interface Advance {
  readonly set: OpenSet;
  readonly heldAmong: ReturnType<typeof heldTenants>;
  readonly outcomes: Map<string, 'done' | 'overtaken'>;
}

const settle = ({ outcomes }: Advance, members: readonly Member[], outcome: 'done' | 'overtaken'): true => {
  for (const { tenantId } of members) outcomes.set(tenantId, outcome);
  return true;
};

/** Those that no other transaction holds. */
const withoutHeld = async (advance: Advance, members: readonly Member[]): Promise<readonly Member[]> => {
  const held = await advance.heldAmong(members);
  settle(advance, held, 'overtaken');
  return members.filter((member) => !held.includes(member));
};

/** So often a conflict may be about the gate or the position, or be over when it is looked for. */
const MAX_CONFLICTS = 10;

/** Without those that others commit or hold, the position stays. False: the set is superseded. */
const commit = async (
  advance: Advance,
  members: readonly Member[],
  to: Head | undefined,
  conflicts = 0,
): Promise<boolean> => {
  const { set } = advance;
  const isToWrite = commitsOf(members).length > 0 || to !== undefined;
  if (isToWrite && (await isWritten(set, members, to))) return settle(advance, members, 'done');
  const seen = await lookAt(set, members);
  if (!seen.isOpen) return false;
  if (seen.overtaken.length > 0) {
    settle(advance, seen.overtaken, 'overtaken');
    return seen.unmoved.length === 0 || commit(advance, seen.unmoved, undefined);
  }
  if (!isToWrite) return settle(advance, members, 'done');
  if (seen.closedBy !== undefined) {
    await awaitSwitch(set.connection, set.id, seen.closedBy);
    return commit(advance, members, to, conflicts);
  }
  if (conflicts === MAX_CONFLICTS)
    throw fault('read_models_unavailable', `Another process holds ${set.id} in ${set.connection.place}.`);
  // At first, it may have been about the gate.
  const free = conflicts === 0 ? members : await withoutHeld(advance, members);
  if (free.length < members.length) return free.length === 0 || commit(advance, free, undefined);
  if (conflicts > 0) await pause(TIMES.busyRetryMs);
  return commit(advance, members, to, conflicts + 1);
};

/** Nobody else writes to a build. What was written is not undone, so one that fails must start over. */
const advanceBuild = async (
  set: OpenSet,
  members: readonly Member[],
  to: Head | undefined,
): Promise<Advanced> => {
  const seen = await lookAt(set, members);
  if (!seen.isOpen || set.isHalfWritten) return 'superseded';
  const write = writing(set, seen.unmoved, seen.overtaken.length === 0 ? to : undefined, FIRST_GATE);
  set.isHalfWritten = true;
  set.isHalfWritten = (await write()) !== true;
  if (set.isHalfWritten) return 'superseded';
  return new Map(members.map((one) => [one.tenantId, seen.overtaken.includes(one) ? 'overtaken' : 'done']));
};

export const advancing = (set: OpenSet): ReadModelSet['advance'] => {
  const heldAmong = heldTenants(set);
  const advanceShared = async (members: readonly Member[], to: Head | undefined): Promise<Advanced> => {
    const advance: Advance = { set, heldAmong, outcomes: new Map() };
    return (await commit(advance, members, to)) ? advance.outcomes : 'superseded';
  };
  return async (before, work, to) => {
    const commits = new Map((await work([...before.keys()])).map((one) => [one.tenantId, one]));
    const members = Array.from(before, ([tenantId, progress]): Member => {
      return { tenantId, before: progress, commit: commits.get(tenantId) };
    });
    return set.connection.run(set.isBuild ? advanceBuild(set, members, to) : advanceShared(members, to));
  };
};
