import type { Change, ComposedProjector, Document } from '../../projections/projector';
import { isWellFormed } from '../domain/texts';
import { decode, type Decoded, type Owner, type SetAside } from '../event-log/codec';
import type { LoggedEvent } from '../event-log/event-log';
import { gapBefore, type Streams } from '../event-log/streams';
import { messageOf } from '../fault';
import { PARKED, STREAMS, type DocumentKey, type ReadModelSet, type Write } from '../read-models/read-models';

/** Why a tenant is parked in a set, and where it resumes. */
export interface ParkedTenant {
  readonly tenant_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly position: string;
  /** When that event was recorded. Everything before it has been applied. */
  readonly recorded_at: string;
  /** Everything of the tenant up to here has been applied. Undefined: nothing has. */
  readonly after?: string;
  /** The event itself is bad, or events are missing before it. */
  readonly cause: 'bad_event' | 'missing_events';
  readonly reason: string;
  readonly since: string;
  /** The version of the program that failed. Another version retries automatically. */
  readonly program: string;
}

/** One per tenant: a set parks a tenant at one event at a time. */
export const parkedKey = (tenantId: string): DocumentKey => ({ tenantId, collection: PARKED, key: 'tenant' });

/** How much of a tenant's stream a set has applied. Its key is the stream kind. */
export interface StreamDocument {
  readonly revision: number;
}

/** A document that a batch touches: loaded together with the others, then changed in memory. */
export interface Slot extends DocumentKey {
  document: Document | undefined;
}

/** Above this number, the next batch begins with none. */
const MAX_KEPT = 4_096;

const within = <V>(outer: Map<string, Map<string, V>>, key: string): Map<string, V> => {
  const inner = outer.get(key) ?? new Map<string, V>();
  if (inner.size === 0) outer.set(key, inner);
  return inner;
};

/**
 * The documents of a set as one projection sees them: as of its last commit, plus everything that it has written since.
 * Discard it unless every commit since was its own.
 */
export const documentCache = (set: Pick<ReadModelSet, 'load'>, maxKept = MAX_KEPT) => {
  /** By tenant, collection and key: hashing one text of all three would cost more than applying an event. */
  const kept = new Map<string, Map<string, Map<string, Slot>>>();
  let size = 0;
  /** The documents of this batch that are not loaded yet. */
  let unloaded: Slot[] = [];
  let written = new Set<Slot>();
  return {
    /** Starts the next batch. */
    begin: (): void => {
      [unloaded, written] = [[], new Set()];
      if (size <= maxKept) return;
      kept.clear();
      size = 0;
    },
    /** Registers a document of this batch. Its content is available after `load`. */
    slot: (key: DocumentKey): Slot => {
      const keys = within(within(kept, key.tenantId), key.collection);
      const known = keys.get(key.key);
      if (known !== undefined) return known;
      const slot: Slot = { ...key, document: undefined };
      keys.set(key.key, slot);
      unloaded.push(slot);
      size += 1;
      return slot;
    },
    load: async (): Promise<void> => {
      const wanted = unloaded;
      unloaded = [];
      if (wanted.length === 0) return;
      const loaded = await set.load(wanted);
      wanted.forEach((slot, i) => (slot.document = loaded[i]));
    },
    write: (slot: Slot, document: Document | undefined): void => {
      slot.document = document;
      written.add(slot);
    },
    /** The documents that the batch changed. Valid until the next batch changes them. */
    writes: (): readonly Write[] => [...written],
  };
};

export type DocumentCache = ReturnType<typeof documentCache>;

export interface Folding {
  readonly projector: ComposedProjector;
  readonly streams: Streams;
  readonly program: string;
  readonly now: () => string;
  readonly setAside: SetAside;
}

/** An event of a tenant, decoded. */
interface BatchEvent {
  readonly logged: LoggedEvent;
  readonly owner: Exclude<Owner, undefined>;
  readonly decoded: Exclude<Decoded, { readonly status: 'foreign' }>;
  /** The position just before it, where its tenant resumes if it is parked here. */
  readonly after: string | undefined;
}

export type TenantBatch = readonly BatchEvent[];

/** Text that not every store can hold makes an event bad in all of them. */
const decodedOf = (logged: LoggedEvent, streams: Streams, owner: BatchEvent['owner']): Decoded => {
  const decoded = decode(logged, streams, owner);
  if (decoded.status !== 'good' || (isWellFormed(logged.data) && isWellFormed(logged.metadata)))
    return decoded;
  return { status: 'bad', ...owner, reason: 'A text is not well-formed: half of a character is missing.' };
};

/** The events of tenants among those after a position. */
export const tenantBatchOf = (
  events: readonly LoggedEvent[],
  streams: Streams,
  after: string | undefined,
): TenantBatch => {
  const batch: BatchEvent[] = [];
  let before = after;
  for (const logged of events) {
    const owner = streams.parse(logged.stream);
    const decoded = owner === undefined ? undefined : decodedOf(logged, streams, owner);
    if (owner !== undefined && decoded !== undefined && decoded.status !== 'foreign')
      batch.push({ logged, owner, decoded, after: before });
    before = logged.position;
  }
  return batch;
};

/** An event of a batch, and the documents that it touches. */
interface Entry {
  readonly event: BatchEvent;
  readonly parking: Slot;
  /** The last revision applied of its stream. */
  readonly progress: Slot;
  readonly changes: readonly { readonly apply: Change['apply']; readonly slots: readonly Slot[] }[];
  /** Why the event is bad. */
  readonly bad?: string;
}

/** The changes of an event. One that is set aside is not applied, whether it is readable or not. */
const documentChangesOf = (
  { projector, setAside }: Folding,
  { logged, owner, decoded }: BatchEvent,
): readonly Change[] => {
  if (setAside.event(owner.tenantId, logged.id)) return projector.onSetAside(logged);
  if (decoded.status === 'bad') throw new Error(decoded.reason);
  return projector.changesOf(decoded.event);
};

const entryOf = (folding: Folding, event: BatchEvent, cache: DocumentCache): Entry => {
  const { tenantId, kind } = event.owner;
  const parking = cache.slot(parkedKey(tenantId));
  const progress = cache.slot({ tenantId, collection: STREAMS, key: kind });
  try {
    const changes = documentChangesOf(folding, event).map(({ apply, touches }) => ({
      apply,
      slots: touches.map(({ collection, key }) => cache.slot({ tenantId, collection, key })),
    }));
    return { event, parking, progress, changes };
  } catch (error) {
    return { event, parking, progress, changes: [], bad: messageOf(error) };
  }
};

/** Applies the changes of one event in order, all or none: if one throws, the earlier ones are reverted. */
const applyAll = (cache: DocumentCache, { changes }: Entry): void => {
  const replaced: [Slot, Document | undefined][] = [];
  try {
    for (const { apply, slots } of changes) {
      const before = slots.map(({ document }) => document);
      const after = apply(before);
      slots.forEach((slot, i) => {
        if (after[i] === before[i]) return;
        replaced.push([slot, before[i]]);
        cache.write(slot, after[i]);
      });
    }
  } catch (error) {
    for (const [slot, document] of replaced.toReversed()) slot.document = document;
    throw error;
  }
};

const park = (
  cache: DocumentCache,
  { event: { logged, owner, after }, parking }: Entry,
  cause: ParkedTenant['cause'],
  reason: string,
  { now, program }: Folding,
): void => {
  const parked: ParkedTenant = {
    tenant_id: owner.tenantId,
    event_id: logged.id,
    event_type: logged.type.toWellFormed(),
    position: logged.position,
    recorded_at: logged.recordedAt,
    ...(after === undefined ? {} : { after }),
    cause,
    reason: reason.toWellFormed(),
    since: now(),
    program,
  };
  cache.write(parking, { ...parked });
};

/** Describes events missing before this one, unless the operator has accepted the gap. */
const gapAt = ({ event: { logged, owner }, progress }: Entry, { setAside }: Folding): string | undefined => {
  const { revision: last } = (progress.document as StreamDocument | undefined) ?? { revision: -1 };
  const gap = gapBefore(logged, last);
  return gap === undefined || setAside.gapBefore(owner.tenantId, logged.id) ? undefined : gap;
};

/** An event that is set aside is skipped but counts as applied, so its stream continues after it. */
const applyOrPark = (cache: DocumentCache, entry: Entry, folding: Folding): void => {
  const gap = gapAt(entry, folding);
  if (gap !== undefined) return park(cache, entry, 'missing_events', gap, folding);
  try {
    if (entry.bad !== undefined) throw new Error(entry.bad);
    applyAll(cache, entry);
    cache.write(entry.progress, { revision: entry.event.logged.revision });
  } catch (error) {
    park(cache, entry, 'bad_event', messageOf(error), folding);
  }
};

/** Loads all documents at once, and only then applies the events. */
const foldInto = async (
  cache: DocumentCache,
  batch: TenantBatch,
  folding: Folding,
  begin: () => void = () => undefined,
): Promise<void> => {
  const entries = batch.map((event) => entryOf(folding, event, cache));
  await cache.load();
  begin();
  for (const entry of entries) if (entry.parking.document === undefined) applyOrPark(cache, entry, folding);
};

export interface Folded {
  readonly writes: readonly Write[];
  /** The tenants that are parked by it. */
  readonly parked: readonly ParkedTenant[];
}

const foldedIn = (cache: DocumentCache): Folded => {
  const writes = cache.writes();
  const parked = writes.flatMap(({ collection, document }) =>
    collection === PARKED && document !== undefined ? [document as unknown as ParkedTenant] : [],
  );
  return { writes, parked };
};

/**
 * Applies a batch to the documents of the cache. Events of a parked tenant are not applied, nor are later events of a
 * tenant that an event of this batch parks.
 */
export const foldBatch = async (folding: Folding, cache: DocumentCache, batch: TenantBatch) => {
  cache.begin();
  await foldInto(cache, batch, folding);
  return foldedIn(cache);
};

/** `again`: it is parked again. `more`: it stays parked behind the last of the events. `free`: it is not parked any more. */
export type Retried = 'again' | 'more' | 'free';

/** The same for a parked tenant: applies its next waiting events, possibly all that are left, as if it were not parked. */
export const foldWaiting = async (
  folding: Folding,
  cache: DocumentCache,
  tenant: ParkedTenant,
  { batch, isRest }: { readonly batch: TenantBatch; readonly isRest: boolean },
): Promise<Folded & { readonly retried: Retried }> => {
  cache.begin();
  const parking = cache.slot(parkedKey(tenant.tenant_id));
  await foldInto(cache, batch, { ...folding, now: () => tenant.since }, () => (parking.document = undefined));
  if (parking.document !== undefined) return { ...foldedIn(cache), retried: 'again' };
  const after = batch.at(-1)?.logged.position ?? tenant.after;
  cache.write(parking, isRest ? undefined : { ...tenant, after });
  return { ...foldedIn(cache), retried: isRest ? 'free' : 'more' };
};
