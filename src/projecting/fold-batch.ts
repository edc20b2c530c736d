import type { Change, Document, Projector } from '../../projections/projector';
import type { Recorded } from '../domain/events';
import { messageOf } from '../fault';
import { PARKED, type DocumentKey, type Generation, type Write } from '../read-models/read-models';
import type { FedBatch, FedEvent } from './feed';

/** Why a tenant waits in one projection, and from where it goes on. */
export interface ParkedTenant {
  readonly tenant_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly position: string;
  /** When that event was recorded: everything before it is in. */
  readonly recorded_at: string;
  /** Everything of the tenant up to here is in. Undefined: nothing is. */
  readonly after?: string;
  readonly reason: string;
  readonly since: string;
  /** The program that could not go on. Another one tries again by itself. */
  readonly program: string;
}

/** Its only key: a tenant is parked once in a projection. */
export const PARKED_KEY = 'tenant';

/** What a fold needs to know about its surroundings; it has no clock of its own. */
export interface Surroundings {
  readonly now: string;
  readonly program: string;
}

interface Step {
  readonly fed: FedEvent;
  readonly tenantId: string;
  /** The position just before it: where the tenant would go on if it were parked here. */
  readonly after: string | undefined;
  readonly changes: readonly Change[];
  readonly bad?: string;
}

const keyText = ({ tenantId, collection, key }: DocumentKey): string => `${tenantId} ${collection} ${key}`;

export const parkedKey = (tenantId: string): DocumentKey => ({
  tenantId,
  collection: PARKED,
  key: PARKED_KEY,
});

type AnyReducer = (event: Recorded) => readonly Change[];

const reduced = (projector: Projector, event: Recorded): Pick<Step, 'changes' | 'bad'> => {
  const reducer = projector.on[event.type] as AnyReducer | undefined;
  try {
    return { changes: reducer === undefined ? [] : reducer(event) };
  } catch (error) {
    return { changes: [], bad: messageOf(error) };
  }
};

const stepsOf = (projector: Projector, batch: FedBatch, after: string | undefined): readonly Step[] =>
  batch.flatMap((fed, i): readonly Step[] => {
    const before = i === 0 ? after : batch[i - 1]?.logged.position;
    if (fed.owner === undefined || !projector.streams.includes(fed.owner.kind)) return [];
    const { decoded } = fed;
    if (decoded.status === 'foreign') return [];
    if (decoded.status === 'bad')
      return [{ fed, tenantId: decoded.tenantId, after: before, changes: [], bad: decoded.reason }];
    const { tenantId } = decoded.event;
    return [{ fed, tenantId, after: before, ...reduced(projector, decoded.event) }];
  });

const touchedBy = ({ tenantId, changes }: Step): readonly DocumentKey[] =>
  changes.flatMap((change) => change.touches.map((reference) => ({ tenantId, ...reference })));

/** The documents of a batch: loaded all at once, changed in memory, each event's changes taken wholly or not at all. */
const workspace = async (generation: Generation, keys: readonly DocumentKey[]) => {
  const wanted = [...new Map(keys.map((key) => [keyText(key), key])).values()];
  const loaded = await generation.load(wanted);
  const documents = new Map(wanted.map((key, i) => [keyText(key), loaded[i]]));
  const written = new Map<string, Write>();

  return {
    get: (key: DocumentKey): Document | undefined => documents.get(keyText(key)),
    put: (writes: readonly Write[]): void => {
      for (const write of writes) {
        documents.set(keyText(write), write.document);
        written.set(keyText(write), write);
      }
    },
    writes: (): readonly Write[] => [...written.values()],
  };
};

type Workspace = Awaited<ReturnType<typeof workspace>>;

/** The writes of one event. Later changes of the event see earlier ones. */
const apply = (space: Workspace, { tenantId, changes }: Step): readonly Write[] => {
  const own = new Map<string, Write>();
  for (const change of changes) {
    const keys = change.touches.map((touched) => ({ tenantId, ...touched }));
    const before = keys.map((key) =>
      own.has(keyText(key)) ? own.get(keyText(key))?.document : space.get(key),
    );
    const after = change.apply(before);
    keys.forEach((key, i) => {
      if (after[i] !== before[i]) own.set(keyText(key), { ...key, document: after[i] });
    });
  }
  return [...own.values()];
};

const parked = (step: Step, reason: string, around: Surroundings): Write => {
  const { logged } = step.fed;
  const document: ParkedTenant = {
    tenant_id: step.tenantId,
    event_id: logged.id,
    event_type: logged.type,
    position: logged.position,
    recorded_at: logged.recordedAt,
    ...(step.after === undefined ? {} : { after: step.after }),
    reason,
    since: around.now,
    program: around.program,
  };
  return { ...parkedKey(step.tenantId), document: { ...document } };
};

const take = (space: Workspace, step: Step, around: Surroundings): void => {
  try {
    if (step.bad !== undefined) throw new Error(step.bad);
    space.put(apply(space, step));
  } catch (error) {
    space.put([parked(step, messageOf(error), around)]);
  }
};

/**
 * What a batch does to the documents, given those of state n. A tenant that is parked, or that is parked by an event of
 * this batch, waits: its later events are not applied.
 */
export const foldBatch = async (
  projector: Projector,
  generation: Generation,
  batch: FedBatch,
  after: string | undefined,
  around: Surroundings,
): Promise<readonly Write[]> => {
  const steps = stepsOf(projector, batch, after);
  const touched = steps.flatMap((step) => [parkedKey(step.tenantId), ...touchedBy(step)]);
  const space = await workspace(generation, touched);
  for (const step of steps) if (space.get(parkedKey(step.tenantId)) === undefined) take(space, step, around);
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
  around: Surroundings,
): Promise<Retried> => {
  const steps = stepsOf(projector, batch, tenant.after);
  const key = parkedKey(tenant.tenant_id);
  const space = await workspace(generation, steps.flatMap(touchedBy));
  const stillSince = { ...around, now: tenant.since };
  for (const step of steps) if (space.get(key) === undefined) take(space, step, stillSince);
  const again = space.get(key) as ParkedTenant | undefined;
  if (again !== undefined) return { writes: space.writes(), tenant: again, outcome: 'parked' };
  const reached = batch.at(-1)?.logged.position ?? tenant.after;
  const further = { ...tenant, ...(reached === undefined ? {} : { after: reached }) };
  const document = last ? undefined : { ...further };
  return {
    writes: [...space.writes(), { ...key, document }],
    tenant: further,
    outcome: last ? 'free' : 'more',
  };
};
