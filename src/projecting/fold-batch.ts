import type { Change, Projector, Reference } from '../../projections/projector';
import type { Recorded } from '../domain/events';
import { gapBefore } from '../event-log/gap';
import { messageOf } from '../fault';
import { PARKED, STREAMS, type DocumentKey, type Generation, type Write } from '../read-models/read-models';
import type { FedBatch, FedEvent } from './pages';
import type { ParkedTenant } from './parking';
import type { StreamDocument } from './stream-revisions';
import { workspace, write, type Slot, type Workspace } from './workspace';

/** Its only key: a tenant is parked once in a projection. */
const PARKED_KEY = 'tenant';

/** What a fold needs to know about its surroundings; it has no clock of its own. */
export interface FoldContext {
  readonly now: string;
  readonly program: string;
  /** Is this event to be passed over in this projection? */
  readonly isSetAside: (eventId: string) => boolean;
  /** Is it to be applied in this projection although events before it are missing? */
  readonly isGapAccepted: (eventId: string) => boolean;
}

interface Step {
  readonly fed: FedEvent;
  readonly tenantId: string;
  /** The position just before it: where the tenant would go on if it were parked here. */
  readonly after: string | undefined;
  readonly parking: Slot;
  /** How far its stream is in. */
  readonly progress: Slot;
  readonly work: Work;
}

/** The changes of one event with the documents that each of them touches, or why there can be none. */
interface Work {
  readonly changes: readonly Change[];
  readonly slots: readonly (readonly Slot[])[];
  readonly bad?: string;
}

const badWork = (bad: string): Work => ({ changes: [], slots: [], bad });

export const parkedKey = (tenantId: string): DocumentKey => ({
  tenantId,
  collection: PARKED,
  key: PARKED_KEY,
});

type AnyReducer = (event: Recorded) => readonly Change[];

const workOf = (projector: Projector, event: Recorded, space: Workspace): Work => {
  const reducer = projector.on[event.type] as AnyReducer | undefined;
  const slotOf = ({ collection, key }: Reference): Slot => space.slot(event.tenantId, collection, key);
  try {
    const changes = reducer === undefined ? [] : reducer(event);
    return { changes, slots: changes.map(({ touches }) => touches.map(slotOf)) };
  } catch (error) {
    return badWork(messageOf(error));
  }
};

const stepOf = (
  projector: Projector,
  fed: FedEvent,
  after: string | undefined,
  space: Workspace,
): Step | undefined => {
  if (fed.owner === undefined || !projector.streams.includes(fed.owner.kind)) return undefined;
  const { decoded } = fed;
  if (decoded.status === 'foreign') return undefined;
  const tenantId = decoded.status === 'bad' ? decoded.tenantId : decoded.event.tenantId;
  const parking = space.slot(tenantId, PARKED, PARKED_KEY);
  const work = decoded.status === 'bad' ? badWork(decoded.reason) : workOf(projector, decoded.event, space);
  const progress = space.slot(tenantId, STREAMS, fed.owner.kind);
  return { fed, tenantId, after, parking, progress, work };
};

const stepsOf = (
  projector: Projector,
  batch: FedBatch,
  after: string | undefined,
  space: Workspace,
): readonly Step[] => {
  const steps: Step[] = [];
  let before = after;
  for (const fed of batch) {
    const step = stepOf(projector, fed, before, space);
    if (step !== undefined) steps.push(step);
    before = fed.logged.position;
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

/** Applies the changes of one event: all of them, or, when one throws, none. Later ones see earlier ones. */
const apply = ({ changes, slots }: Work): void => {
  const were =
    changes.length < 2
      ? []
      : slots.flat().map((slot) => ({ slot, document: slot.document, isWritten: slot.isWritten }));
  try {
    changes.forEach((change, i) => applyOne(change, slots[i] as readonly Slot[]));
  } catch (error) {
    for (const { slot, ...was } of were) Object.assign(slot, was);
    throw error;
  }
};

const park = (
  { fed: { logged }, tenantId, after, parking }: Step,
  why: Pick<ParkedTenant, 'cause' | 'reason'>,
  context: FoldContext,
): void => {
  const parked: ParkedTenant = {
    tenant_id: tenantId,
    event_id: logged.id,
    event_type: logged.type,
    position: logged.position,
    recorded_at: logged.recordedAt,
    ...(after === undefined ? {} : { after }),
    ...why,
    since: context.now,
    program: context.program,
  };
  write(parking, { ...parked });
};

/** What is missing before an event, unless the operator has accepted that. */
const gapAt = ({ fed: { logged }, progress }: Step, context: FoldContext): string | undefined => {
  const { revision: last } = (progress.document as StreamDocument | undefined) ?? { revision: -1 };
  const gap = gapBefore(logged, last);
  return gap === undefined || context.isGapAccepted(logged.id) ? undefined : gap;
};

/** An event that is set aside is passed over, and is in as well: its stream goes on after it. */
const take = (step: Step, context: FoldContext): void => {
  const { id, revision } = step.fed.logged;
  const gap = gapAt(step, context);
  if (gap !== undefined) return park(step, { cause: 'missing_events', reason: gap }, context);
  try {
    if (!context.isSetAside(id)) {
      if (step.work.bad !== undefined) throw new Error(step.work.bad);
      apply(step.work);
    }
    write(step.progress, { revision });
  } catch (error) {
    park(step, { cause: 'bad_event', reason: messageOf(error) }, context);
  }
};

/**
 * What a batch does to the documents of the workspace. A tenant that is parked, or that is parked by an event of
 * this batch, waits: its later events are not applied.
 */
export const foldBatch = async (
  projector: Projector,
  space: Workspace,
  batch: FedBatch,
  after: string | undefined,
  context: FoldContext,
): Promise<readonly Write[]> => {
  space.begin();
  const steps = stepsOf(projector, batch, after, space);
  await space.load();
  for (const step of steps) if (step.parking.document === undefined) take(step, context);
  return space.writes();
};

/** What became of a parked tenant that was tried again: it still has more waiting, is parked again, or is free. */
export interface Retried {
  readonly writes: readonly Write[];
  readonly tenant: ParkedTenant;
  readonly outcome: 'more' | 'parked' | 'free';
}

/**
 * The same for a parked tenant that is tried again: its next waiting events, as if it were not parked. While there is
 * more it stays parked, further on; `last` says that there is no more.
 */
export const foldWaiting = async (
  projector: Projector,
  generation: Generation,
  tenant: ParkedTenant,
  batch: FedBatch,
  last: boolean,
  context: FoldContext,
): Promise<Retried> => {
  const space = workspace(generation);
  space.begin();
  const parking = space.slot(tenant.tenant_id, PARKED, PARKED_KEY);
  const steps = stepsOf(projector, batch, tenant.after, space);
  await space.load();
  parking.document = undefined;
  const stillSince = { ...context, now: tenant.since };
  for (const step of steps) if (parking.document === undefined) take(step, stillSince);
  const again = parking.document as ParkedTenant | undefined;
  if (again !== undefined) return { writes: space.writes(), tenant: again, outcome: 'parked' };
  const reached = batch.at(-1)?.logged.position ?? tenant.after;
  const further = { ...tenant, ...(reached === undefined ? {} : { after: reached }) };
  write(parking, last ? undefined : { ...further });
  return { writes: space.writes(), tenant: further, outcome: last ? 'free' : 'more' };
};
