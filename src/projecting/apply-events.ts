import { isDeepStrictEqual } from 'node:util';
import {
  fieldsOfIndex,
  numberingOf,
  type Carried,
  type Change,
  type ComposedProjector,
  type Document,
  type LineEnd,
  type LineReference,
  type Reference,
  type TenantLine,
  type Value,
} from '../../projections/projector';
import type { StreamKind } from '../domain/events';
import { isWellFormed } from '../domain/texts';
import { decode, type Decoded, type Owner, type SetAside } from '../event-log/codec';
import type { Head, LoggedEvent, Position } from '../event-log/event-log';
import { gapBefore, type Streams } from '../event-log/streams';
import { statementOf } from '../evidence/statement';
import { leafHash } from '../evidence/tree';
import { messageOf } from '../fault';
import type {
  DocumentKey,
  ParkedTenant,
  Progress,
  ReadModelSet,
  TenantCommit,
  Write,
} from '../read-models/read-models';

/** A document that events touch: loaded together with the others, then changed in memory. */
export interface Slot extends DocumentKey {
  /** As it is stored. */
  stored: Document | undefined;
  document: Document | undefined;
  /** It is taken to be absent, and not loaded. */
  readonly isTakenAsNew: boolean;
}

/** How the rows of an index are numbered. */
type Numbering = ReturnType<typeof numberingOf>;

/** By collection and index. */
type Numberings = ReadonlyMap<string, ReadonlyMap<string, Numbering>>;

const numberingsIn = (collections: ComposedProjector['collections']): Numberings =>
  new Map(
    collections.map((collection) => {
      const numbering = (index: string): readonly [string, Numbering] => {
        const equal = fieldsOfIndex(collection, index).slice(0, -1);
        return [index, numberingOf(collection, { index, equal })];
      };
      return [collection.name, new Map(Object.keys(collection.numbered ?? {}).map(numbering))];
    }),
  );

/** The end of a line, likewise. */
export interface EndSlot extends TenantLine {
  readonly numbering: Numbering;
  end: LineEnd;
}

/** What is known of a tenant: some of its documents and ends of its lines, as of its progress. */
export interface KnownTenant {
  readonly progress: Progress | undefined;
  readonly slots: Map<string, Slot>;
  readonly ends: Map<string, EndSlot>;
}

const NO_END: LineEnd = { number: 0, value: undefined };

const lineKey = ({ collection, index, equal }: LineReference): string =>
  `${collection} ${index} ${equal.length > 1 ? JSON.stringify(equal) : equal.join()}`;

/** What the events of one commit touch of a tenant: what is not known is to be loaded. */
const touching = (
  known: KnownTenant,
  tenantId: string,
  { projector, loadsNew }: Applying,
  numberings: Numberings,
) => {
  const slots = new Map<string, Slot>();
  const ends = new Map<string, EndSlot>();
  const carried = new Map<string, Slot>();
  return {
    /** To be loaded. */
    slots,
    ends,
    /** Loaded with the progress. */
    carried,
    slotOf: ({ collection, key, isNew = false }: Reference): Slot => {
      const name = `${collection} ${key}`;
      const found = known.slots.get(name) ?? slots.get(name) ?? carried.get(collection);
      if (found !== undefined) return found;
      const isCarried = projector.carried.has(collection);
      const stored = isCarried ? known.progress?.carried?.[collection] : undefined;
      const isTakenAsNew = isNew && !loadsNew;
      const slot = { tenantId, collection, key, stored, document: stored, isTakenAsNew };
      if (isCarried) carried.set(collection, slot);
      else slots.set(name, slot);
      return slot;
    },
    endOf: (line: LineReference): EndSlot => {
      const name = lineKey(line);
      const found = known.ends.get(name) ?? ends.get(name);
      if (found !== undefined) return found;
      const { collection, index, equal } = line;
      const numbering = numberings.get(collection)?.get(index);
      if (numbering === undefined) throw new Error(`The index ${index} of ${collection} has no lines.`);
      const slot = { tenantId, collection, index, equal, numbering, end: NO_END };
      ends.set(name, slot);
      return slot;
    },
  };
};

export type Touched = ReturnType<typeof touching>;

/** How events become changes of documents. */
export interface Applying {
  readonly projector: ComposedProjector;
  readonly streams: Streams;
  readonly program: string;
  readonly now: () => string;
  readonly setAside: SetAside;
  /** Documents that are most likely new are loaded too. */
  readonly loadsNew: boolean;
}

/** The next events of a tenant, and the progress after which they come. */
export interface TenantEvents {
  readonly tenantId: string;
  readonly before: Progress | undefined;
  /** In the order of the log. Those that are applied already are skipped. */
  readonly events: readonly LoggedEvent[];
  /** The tenant is parked, and these events are applied nevertheless: everything up to a position, or a part of it. */
  readonly waiting?: { readonly readUpTo: Position; readonly isRest: boolean };
}

/** What is to be committed of a tenant, and what is known of it once that is done. */
export interface Applied {
  readonly commit: TenantCommit;
  readonly known: KnownTenant;
  readonly touched: Touched;
  readonly changed: ReadonlySet<Slot>;
}

export const START: Progress = { tenant: -1, activity: -1, position: '' };

/** A later event that has a revision again shows that others with it were lost from the log. */
export const isApplied = (
  { revision, position }: LoggedEvent,
  kind: StreamKind,
  progress: Progress = START,
): boolean => revision <= progress[kind] && position <= progress.position;

/** An event of a tenant, decoded, with what it changes. */
interface Entry {
  readonly logged: LoggedEvent;
  readonly kind: StreamKind;
  readonly changes: readonly {
    readonly apply: Change['apply'];
    readonly slots: readonly Slot[];
    readonly ends: readonly EndSlot[];
  }[];
  /** Why the event is bad. */
  readonly bad?: string;
}

/** Text that not every store can hold makes an event bad in all of them. */
const decodedOf = (logged: LoggedEvent, streams: Streams, owner: Owner): Decoded => {
  const decoded = decode(logged, streams, owner);
  if (owner === undefined || decoded.status !== 'good') return decoded;
  if (isWellFormed(logged.data) && isWellFormed(logged.metadata)) return decoded;
  return { status: 'bad', ...owner, reason: 'A text is not well-formed: half of a character is missing.' };
};

/** The changes of an event. One that is set aside has a row that says so, whether it is readable or not. */
const changesOf = (
  { projector, setAside }: Applying,
  logged: LoggedEvent,
  decoded: Exclude<Decoded, { readonly status: 'foreign' }>,
  { tenantId, kind }: Exclude<Owner, undefined>,
): readonly Change[] => {
  const { id, position, recordedAt } = logged;
  const leaf = () => leafHash(statementOf(tenantId, kind, logged));
  if (setAside.event(tenantId, id))
    return projector.onSetAside({ id, position, recordedAt, kind, leaf, type: logged.type.toWellFormed() });
  if (decoded.status === 'bad') throw new Error(decoded.reason);
  return projector.changesOf(decoded.event, leaf);
};

/** Undefined: it is not an event of a tenant. */
const entryOf = (applying: Applying, logged: LoggedEvent, { slotOf, endOf }: Touched): Entry | undefined => {
  const owner = applying.streams.parse(logged.stream);
  const decoded = owner === undefined ? undefined : decodedOf(logged, applying.streams, owner);
  if (owner === undefined || decoded === undefined || decoded.status === 'foreign') return undefined;
  const { kind } = owner;
  try {
    const changes = changesOf(applying, logged, decoded, owner).map(({ apply, touches, lines = [] }) => ({
      apply,
      slots: touches.map(slotOf),
      ends: lines.map(endOf),
    }));
    return { logged, kind, changes };
  } catch (error) {
    return { logged, kind, changes: [], bad: messageOf(error) };
  }
};

/** A row that a change has added is the last one of the lines whose ends it needed. */
const extendLines = (row: Document, collection: string, ends: readonly EndSlot[]): void => {
  for (const slot of ends) {
    if (slot.collection !== collection) continue;
    const { number, monotonicField } = slot.numbering;
    slot.end = { number: Number(row[number]), value: row[monotonicField] as Value };
  }
};

const replaceDocument = (
  slot: Slot,
  document: Document | undefined,
  ends: readonly EndSlot[],
  changed: Set<Slot>,
): void => {
  const before = slot.document;
  if (document === before) return;
  slot.document = document;
  changed.add(slot);
  if (before === undefined && document !== undefined) extendLines(document, slot.collection, ends);
};

/** Applies the changes of one event in order, all or none. */
const applyAll = ({ changes }: Entry, changed: Set<Slot>): void => {
  const reverts: (() => void)[] = [];
  try {
    for (const { apply, slots, ends } of changes) {
      const before = slots.map(({ document }) => document);
      const endsBefore = ends.map(({ end }) => end);
      const after = apply(before, endsBefore);
      reverts.push(() => {
        slots.forEach((slot, i) => (slot.document = before[i]));
        ends.forEach((slot, i) => (slot.end = endsBefore[i] ?? NO_END));
      });
      slots.forEach((slot, i) => replaceDocument(slot, after[i], ends, changed));
    }
  } catch (error) {
    // What was changed and reverted is as it is stored, so it is not written.
    for (const revert of reverts.toReversed()) revert();
    throw error;
  }
};

/** Why the event cannot come next, unless the operator has accepted that. */
const whyMisplaced = (
  { setAside }: Applying,
  { logged, kind }: Entry,
  tenantId: string,
  progress: Progress,
): readonly [ParkedTenant['cause'], string] | undefined => {
  const gap = gapBefore(logged, progress[kind]);
  if (gap !== undefined && !setAside.gapBefore(tenantId, logged.id)) return ['missing_events', gap];
  if (logged.position > progress.position || setAside.event(tenantId, logged.id)) return undefined;
  const reason = `The event stands in the log before ${progress.position}, up to which everything was applied.`;
  return ['out_of_order', reason];
};

/** Applies an event, or parks its tenant. One that is set aside counts as applied, so its stream continues after it. */
const applyOrPark = (
  applying: Applying,
  tenantId: string,
  entry: Entry,
  progress: Progress,
  apply: (entry: Entry) => void,
): Progress => {
  const { id, type, position, revision, recordedAt } = entry.logged;
  const parked = (cause: ParkedTenant['cause'], reason: string): Progress => ({
    ...progress,
    parked: {
      tenant_id: tenantId,
      event_id: id,
      event_type: type.toWellFormed(),
      position,
      recorded_at: recordedAt,
      cause,
      reason: reason.toWellFormed(),
      since: applying.now(),
      program: applying.program,
    },
  });
  const misplaced = whyMisplaced(applying, entry, tenantId, progress);
  if (misplaced !== undefined) return parked(...misplaced);
  try {
    if (entry.bad !== undefined) throw new Error(entry.bad);
    apply(entry);
  } catch (error) {
    return parked('bad_event', messageOf(error));
  }
  const furthest = position > progress.position ? position : progress.position;
  return { ...progress, [entry.kind]: revision, position: furthest };
};

const writesOf = (changed: ReadonlySet<Slot>, { carried }: Touched): readonly Write[] => {
  const writes: Write[] = [];
  for (const { tenantId, collection, key, stored, document } of changed)
    if (!carried.has(collection) && !isDeepStrictEqual(stored, document))
      writes.push({ tenantId, collection, key, document, isNew: stored === undefined });
  return writes;
};

/** With what it carries now. */
const carrying = (progress: Progress, { carried }: Touched): Progress => {
  if (carried.size === 0) return progress;
  const documents = Array.from(carried, ([collection, { document }]) => [collection, document] as const);
  return { ...progress, carried: { ...progress.carried, ...Object.fromEntries(documents) } as Carried };
};

/** The mark of a parked tenant stays until everything that waits is applied. */
const afterWaiting = (
  { before, waiting }: TenantEvents,
  { parked, ...progress }: Progress,
): Pick<TenantCommit, 'progress' | 'readUpTo'> => {
  const mark = before?.parked;
  if (waiting === undefined || mark === undefined)
    return { progress: parked === undefined ? progress : { ...progress, parked } };
  if (parked !== undefined) return { progress: { ...progress, parked: { ...parked, since: mark.since } } };
  if (!waiting.isRest) return { progress: { ...progress, parked: mark } };
  return { progress, readUpTo: waiting.readUpTo };
};

/** Applies events of tenants to documents of a set. */
export const eventApplier = (
  set: Pick<ReadModelSet, 'load' | 'lastOf'>,
  { collections }: Pick<ComposedProjector, 'collections'>,
  takeKnown: (tenantId: string, progress: Progress | undefined) => KnownTenant,
) => {
  const numberings = numberingsIn(collections);

  const prepared = (applying: Applying, tenant: TenantEvents) => {
    const { tenantId, before, events } = tenant;
    const taken = takeKnown(tenantId, before);
    const touched = touching(taken, tenantId, applying, numberings);
    const entries = events.flatMap((event) => {
      const kind = applying.streams.parse(event.stream)?.kind;
      if (kind === undefined || isApplied(event, kind, before)) return [];
      return entryOf(applying, event, touched) ?? [];
    });
    return { tenant, known: taken, touched, entries };
  };

  const applied = (
    applying: Applying,
    { tenant, entries, ...rest }: ReturnType<typeof prepared>,
  ): Applied => {
    const { tenantId, before: { parked: _, ...start } = START } = tenant;
    const changed = new Set<Slot>();
    const apply = (entry: Entry): void => applyAll(entry, changed);
    let progress: Progress = start;
    let head: Head | undefined;
    for (const entry of entries) {
      progress = applyOrPark(applying, tenantId, entry, progress, apply);
      if (progress.parked !== undefined) break;
      head = { position: entry.logged.position, eventId: entry.logged.id };
    }
    const { progress: end, ...others } = afterWaiting(tenant, progress);
    const writes = writesOf(changed, rest.touched);
    return {
      ...rest,
      commit: { tenantId, writes, progress: carrying(end, rest.touched), ...others, head },
      changed,
    };
  };

  /** Loads all documents at once, and only then applies the events of each tenant, up to a bad one. */
  return async (applying: Applying, group: readonly TenantEvents[]): Promise<readonly Applied[]> => {
    const all = group.map((tenant) => prepared(applying, tenant));
    const slots = all.flatMap(({ touched }) =>
      [...touched.slots.values()].filter((slot) => !slot.isTakenAsNew),
    );
    const ends = all.flatMap(({ touched }) => [...touched.ends.values()]);
    const [documents, found] = await Promise.all([
      slots.length === 0 ? [] : set.load(slots),
      ends.length === 0 ? [] : set.lastOf(ends),
    ]);
    for (const [i, slot] of slots.entries()) slot.document = slot.stored = documents[i];
    for (const [i, slot] of ends.entries()) slot.end = found[i] ?? NO_END;
    return all.map((one) => applied(applying, one));
  };
};
