import type { Change, Projector, Reference } from '../../projections/projector';
import type { Recorded } from '../domain/events';
import { gapBefore } from '../event-log/gap';
import { messageOf } from '../fault';
import { PARKED, STREAMS, type Target, type Write } from '../read-models/read-models';
import type { Batch, BatchEvent } from './batch';
import { documentCache, write, type DocumentCache, type Slot } from './document-cache';
import { PARKED_KEY, type ParkedTenant } from './parked-tenants';
import type { SetAside } from './set-aside';
import type { StreamDocument } from './stream-revisions';

export interface Folding {
  readonly projector: Projector;
  /** The version of this program. */
  readonly program: string;
  readonly now: () => string;
  readonly setAside: SetAside;
}

interface Step {
  readonly entry: BatchEvent;
  readonly tenantId: string;
  /** The position just before it, where the tenant resumes if it is parked here. */
  readonly after: string | undefined;
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

const badWork = (bad: string): Work => ({ changes: [], slots: [], bad });

type AnyReducer = (event: Recorded) => readonly Change[];

/** The changes of an event. One that is set aside is not applied, whether it is readable or not. */
const changesOf = (
  { projector, setAside }: Folding,
  { logged, decoded }: BatchEvent,
  tenantId: string,
): readonly Change[] => {
  if (setAside.event(projector.name, tenantId, logged.id)) return projector.onSetAside?.(logged) ?? [];
  if (decoded.status === 'bad') throw new Error(decoded.reason);
  if (decoded.status === 'foreign') return [];
  const reducer = projector.on[decoded.event.type] as AnyReducer | undefined;
  return reducer?.(decoded.event) ?? [];
};

const workOf = (run: Folding, entry: BatchEvent, tenantId: string, cache: DocumentCache): Work => {
  const slotOf = ({ collection, key }: Reference): Slot => cache.slot(tenantId, collection, key);
  try {
    const changes = changesOf(run, entry, tenantId);
    return { changes, slots: changes.map(({ touches }) => touches.map(slotOf)) };
  } catch (error) {
    return badWork(messageOf(error));
  }
};

const stepOf = (
  run: Folding,
  entry: BatchEvent,
  after: string | undefined,
  cache: DocumentCache,
): Step | undefined => {
  if (entry.owner === undefined || !run.projector.streams.includes(entry.owner.kind)) return undefined;
  const { decoded } = entry;
  if (decoded.status === 'foreign') return undefined;
  const tenantId = decoded.status === 'bad' ? decoded.tenantId : decoded.event.tenantId;
  const parking = cache.slot(tenantId, PARKED, PARKED_KEY);
  const work = workOf(run, entry, tenantId, cache);
  const progress = cache.slot(tenantId, STREAMS, entry.owner.kind);
  return { entry, tenantId, after, parking, progress, work };
};

const stepsOf = (
  run: Folding,
  batch: Batch,
  after: string | undefined,
  cache: DocumentCache,
): readonly Step[] => {
  const steps: Step[] = [];
  let before = after;
  for (const entry of batch) {
    const step = stepOf(run, entry, before, cache);
    if (step !== undefined) steps.push(step);
    before = entry.logged.position;
  }
  return steps;
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
  const originals =
    changes.length < 2
      ? []
      : slots.flat().map((slot) => ({ slot, document: slot.document, isWritten: slot.isWritten }));
  try {
    changes.forEach((change, i) => applyOne(change, slots[i] as readonly Slot[]));
  } catch (error) {
    for (const { slot, ...original } of originals) Object.assign(slot, original);
    throw error;
  }
};

const park = (
  { entry: { logged }, tenantId, after, parking }: Step,
  why: Pick<ParkedTenant, 'cause' | 'reason'>,
  run: Folding,
): void => {
  const parked: ParkedTenant = {
    tenant_id: tenantId,
    event_id: logged.id,
    event_type: logged.type,
    position: logged.position,
    recorded_at: logged.recordedAt,
    ...(after === undefined ? {} : { after }),
    ...why,
    since: run.now(),
    program: run.program,
  };
  write(parking, { ...parked });
};

/** Describes events missing before this one, unless the operator has accepted the gap. */
const gapAt = ({ entry: { logged }, tenantId, progress }: Step, run: Folding): string | undefined => {
  const { revision: last } = (progress.document as StreamDocument | undefined) ?? { revision: -1 };
  const gap = gapBefore(logged, last);
  const isAccepted = gap === undefined || run.setAside.gapBefore(run.projector.name, tenantId, logged.id);
  return isAccepted ? undefined : gap;
};

/** An event that is set aside is skipped but counts as applied, so its stream continues after it. */
const take = (step: Step, run: Folding): void => {
  const { revision } = step.entry.logged;
  const gap = gapAt(step, run);
  if (gap !== undefined) return park(step, { cause: 'missing_events', reason: gap }, run);
  try {
    if (step.work.bad !== undefined) throw new Error(step.work.bad);
    apply(step.work);
    write(step.progress, { revision });
  } catch (error) {
    park(step, { cause: 'bad_event', reason: messageOf(error) }, run);
  }
};

/** With more, the steps would survive young-generation garbage collections and be copied. */
const MAX_STEPS = 512;

/**
 * Applies a batch to the documents of the cache. Events of a parked tenant are not applied, nor are later events of a
 * tenant that an event of this batch parks. With `refused`, every event of the batch parks its tenant.
 */
export const foldBatch = async (
  run: Folding,
  cache: DocumentCache,
  batch: Batch,
  after: string | undefined,
  refused?: string,
): Promise<readonly Write[]> => {
  cache.begin();
  let before = after;
  for (let at = 0; at < batch.length; at += MAX_STEPS) {
    const part = batch.slice(at, at + MAX_STEPS);
    const steps = stepsOf(run, part, before, cache);
    await cache.load();
    for (const step of steps) {
      if (step.parking.document !== undefined) continue;
      if (refused === undefined) take(step, run);
      else park(step, { cause: 'bad_event', reason: refused }, run);
    }
    before = part.at(-1)?.logged.position;
  }
  return cache.writes();
};

/** The result of retrying a parked tenant: it may have more events waiting, is parked again, or is no longer parked. */
export interface Retried {
  readonly writes: readonly Write[];
  readonly outcome: 'more' | 'parked' | 'free';
}

/**
 * The same for retrying a parked tenant: applies its next waiting events as if it were not parked. It stays parked, but at
 * a later position, until none are waiting.
 */
export const foldWaiting = async (
  run: Folding & { readonly generation: Target },
  tenant: ParkedTenant,
  batch: Batch,
): Promise<Retried> => {
  const cache = documentCache(run.generation);
  cache.begin();
  const parking = cache.slot(tenant.tenant_id, PARKED, PARKED_KEY);
  const steps = stepsOf(run, batch, tenant.after, cache);
  await cache.load();
  parking.document = undefined;
  const retrying = { ...run, now: () => tenant.since };
  for (const step of steps) if (parking.document === undefined) take(step, retrying);
  const isParkedAgain = (parking.document as ParkedTenant | undefined) !== undefined;
  if (isParkedAgain) return { writes: cache.writes(), outcome: 'parked' };
  const reached = batch.at(-1)?.logged.position;
  write(parking, reached === undefined ? undefined : { ...tenant, after: reached });
  return { writes: cache.writes(), outcome: reached === undefined ? 'free' : 'more' };
};
