import type { AnyBulkWriteOperation, UpdateFilter } from 'mongodb';
import type { Head } from '../../event-log/event-log';
import {
  furtherOf,
  isFreedTooEarly,
  marksChangedBy,
  PROGRESS_KEY,
  type Progress,
  type TenantCommit,
  type Write,
} from '../read-models';
import { ABSENT, idOf, storedHead, storingIn } from './layout';
import type { Stored, StoredControl, StoredGate } from './layout';
import { declaredIn, textOfKey, type OpenSet } from './set-reader';

/** A tenant of a group, with what is to be committed of it, if anything. */
export interface Member {
  readonly tenantId: string;
  readonly before: Progress | undefined;
  readonly commit: TenantCommit | undefined;
}

export const commitsOf = (members: readonly Member[]): readonly TenantCommit[] =>
  members.flatMap(({ commit }) => commit ?? []);

/** Whether a commit that frees a tenant would leave out what waits. */
export const isTooEarly = ({ tenantId, before, commit }: Member, to: Head | undefined): boolean =>
  commit !== undefined && isFreedTooEarly(new Map([[tenantId, before]]), commit, to);

const parksOrFrees = ({ before, commit }: Member): boolean =>
  commit !== undefined && (before?.parked === undefined) !== (commit.progress.parked === undefined);

/** What changes of the control state. Undefined: nothing. */
export const controlChange = (
  members: readonly Member[],
  to: Head | undefined,
): UpdateFilter<StoredControl> | undefined => {
  if (to === undefined && !members.some(parksOrFrees)) return undefined;
  const before = new Map(members.map((member) => [member.tenantId, member.before]));
  const marks = marksChangedBy(before, commitsOf(members));
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
export const progressChanges = (
  members: readonly Member[],
  to: Head | undefined,
  gate: StoredGate['_id'],
): readonly AnyBulkWriteOperation<StoredGate>[] => {
  const furthest = commitsOf(members).reduce((most, { head }) => furtherOf(most, head), to);
  const update = { $inc: { n: 1 }, ...(furthest && { $max: { furthest: storedHead(furthest) } }) };
  const changes = members.flatMap(({ before, commit }) => (commit ? [progressChange(before, commit)] : []));
  const all = [...changes, { updateOne: { filter: { _id: gate, closed_by: ABSENT }, update } }];
  return all;
};

/** By collection. In any order, so only the last write of each document counts. */
export const documentChanges = (
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
