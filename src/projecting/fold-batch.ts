import type { Change, Reference } from '../../projections/projector';
import { gapBefore } from '../event-log/gap';
import type { Streams } from '../event-log/streams';
import { messageOf } from '../fault';
import { PARKED, STREAMS, type Write } from '../read-models/read-models';
import type { Batch, BatchEvent } from './batch';
import type { ComposedProjector } from './compose';
import { write, type DocumentCache, type Slot } from './document-cache';
import { parkedKey, type ParkedTenant } from './parked-tenants';
import type { SetAside } from './set-aside';
import type { StreamDocument } from './stream-revisions';

export interface Folding {
  readonly projector: ComposedProjector;
  readonly streams: Streams;
  /** The version of this program. */
  readonly program: string;
  readonly now: () => string;
  readonly setAside: SetAside;
}

interface Step {
  readonly entry: BatchEvent;
  readonly parking: Slot;
  /** The last revision applied of its stream. */
  readonly progress: Slot;
  readonly work: Work;
}

/** The changes of one event with the documents that each touches, or why the event is bad. */
interface Work {
  readonly changes: readonly Change[];
  readonly slots: readonly (readonly Slot[])[];
  readonly bad?: string;
}

/** The changes of an event. One that is set aside is not applied, whether it is readable or not. */
const changesOf = (
  { projector, setAside }: Folding,
  { logged, owner, decoded }: BatchEvent,
): readonly Change[] => {
  if (setAside.event(owner.tenantId, logged.id)) return projector.onSetAside(logged);
  if (decoded.status === 'bad') throw new Error(decoded.reason);
  return projector.changesOf(decoded.event);
};

const workOf = (folding: Folding, entry: BatchEvent, cache: DocumentCache): Work => {
  const slotOf = ({ collection, key }: Reference): Slot => cache.slot(entry.owner.tenantId, collection, key);
  try {
    const changes = changesOf(folding, entry);
    return { changes, slots: changes.map(({ touches }) => touches.map(slotOf)) };
  } catch (error) {
    return { changes: [], slots: [], bad: messageOf(error) };
  }
};

const parkingOf = (cache: DocumentCache, tenantId: string): Slot => {
  const { collection, key } = parkedKey(tenantId);
  return cache.slot(tenantId, collection, key);
};

const stepOf = (folding: Folding, entry: BatchEvent, cache: DocumentCache): Step => {
  const { tenantId, kind } = entry.owner;
  return {
    entry,
    parking: parkingOf(cache, tenantId),
    progress: cache.slot(tenantId, STREAMS, kind),
    work: workOf(folding, entry, cache),
  };
};

const applyOne = (change: Change, slots: readonly Slot[]): void => {
  const before = slots.map((slot) => slot.document);
  const after = change.apply(before);
  slots.forEach((slot, i) => {
    if (after[i] !== before[i]) write(slot, after[i]);
  });
};

/** Applies the changes of one event in order, all or none: if one throws, the earlier ones are reverted. */
const apply = ({ changes, slots }: Work): void => {
  const originals = slots
    .flat()
    .map((slot) => ({ slot, document: slot.document, isWritten: slot.isWritten }));
  try {
    changes.forEach((change, i) => applyOne(change, slots[i] as readonly Slot[]));
  } catch (error) {
    for (const { slot, ...original } of originals) Object.assign(slot, original);
    throw error;
  }
};

const park = (
  { entry: { logged, owner, after }, parking }: Step,
  why: Pick<ParkedTenant, 'cause' | 'reason'>,
  { now, program }: Folding,
): void => {
  const parked: ParkedTenant = {
    tenant_id: owner.tenantId,
    event_id: logged.id,
    event_type: logged.type.toWellFormed(),
    position: logged.position,
    recorded_at: logged.recordedAt,
    ...(after === undefined ? {} : { after }),
    cause: why.cause,
    reason: why.reason.toWellFormed(),
    since: now(),
    program,
  };
  write(parking, { ...parked });
};

/** Describes events missing before this one, unless the operator has accepted the gap. */
const gapAt = ({ entry: { logged, owner }, progress }: Step, { setAside }: Folding): string | undefined => {
  const { revision: last } = (progress.document as StreamDocument | undefined) ?? { revision: -1 };
  const gap = gapBefore(logged, last);
  return gap === undefined || setAside.gapBefore(owner.tenantId, logged.id) ? undefined : gap;
};

/** An event that is set aside is skipped but counts as applied, so its stream continues after it. */
const take = (step: Step, folding: Folding): void => {
  const gap = gapAt(step, folding);
  if (gap !== undefined) return park(step, { cause: 'missing_events', reason: gap }, folding);
  try {
    if (step.work.bad !== undefined) throw new Error(step.work.bad);
    apply(step.work);
    write(step.progress, { revision: step.entry.logged.revision });
  } catch (error) {
    park(step, { cause: 'bad_event', reason: messageOf(error) }, folding);
  }
};

/** Loads all documents at once, and only then applies the events. */
const foldInto = async (
  folding: Folding,
  cache: DocumentCache,
  batch: Batch,
  begin: () => void = () => undefined,
): Promise<void> => {
  const steps = batch.map((entry) => stepOf(folding, entry, cache));
  await cache.load();
  begin();
  for (const step of steps) if (step.parking.document === undefined) take(step, folding);
};

export interface Folded {
  readonly writes: readonly Write[];
  /** The tenants that are parked by it. */
  readonly parked: readonly ParkedTenant[];
}

const foldedOf = (cache: DocumentCache): Folded => {
  const writes = cache.writes();
  const parked = writes
    .filter(({ collection, document }) => collection === PARKED && document !== undefined)
    .map(({ document }) => document as unknown as ParkedTenant);
  return { writes, parked };
};

/**
 * Applies a batch to the documents of the cache. Events of a parked tenant are not applied, nor are later events of a
 * tenant that an event of this batch parks.
 */
export const foldBatch = async (folding: Folding, cache: DocumentCache, batch: Batch): Promise<Folded> => {
  cache.begin();
  await foldInto(folding, cache, batch);
  return foldedOf(cache);
};

/** `again`: it is parked again. `more`: it stays parked behind the last of the events. `free`: it is not parked any more. */
export type Retried = 'again' | 'more' | 'free';

/** The same for a parked tenant: applies its next waiting events, possibly all that are left, as if it were not parked. */
export const foldWaiting = async (
  folding: Folding,
  cache: DocumentCache,
  tenant: ParkedTenant,
  { batch, isRest }: { readonly batch: Batch; readonly isRest: boolean },
): Promise<Folded & { readonly retried: Retried }> => {
  cache.begin();
  const parking = parkingOf(cache, tenant.tenant_id);
  const retrying = { ...folding, now: () => tenant.since };
  await foldInto(retrying, cache, batch, () => (parking.document = undefined));
  if (parking.document !== undefined) return { ...foldedOf(cache), retried: 'again' };
  const after = batch.at(-1)?.logged.position ?? tenant.after;
  write(parking, isRest ? undefined : { ...tenant, after });
  return { ...foldedOf(cache), retried: isRest ? 'free' : 'more' };
};
