import type { Collection, ComposedProjector } from '../../projections/projector';
import { isoNow } from '../async/clock';
import { readSetAside } from '../event-log/codec';
import type { Batch, Head, LoggedEvent, Position } from '../event-log/event-log';
import { gapBefore, type LedgerLog } from '../event-log/streams';
import { codeOf } from '../fault';
import {
  isSameProgress,
  type Control,
  type ParkedTenant,
  type Progress,
  type ReadModels,
  type ReadModelSet,
} from '../read-models/read-models';
import {
  eventApplier,
  START,
  type Applied,
  type Applying,
  type KnownTenant,
  type TenantEvents,
  type Touched,
} from './apply-events';

export interface ReplayDependencies extends LedgerLog {
  readonly readModels: ReadModels;
  readonly projector: ComposedProjector;
  readonly program: string;
  readonly abort?: AbortSignal;
}

/** What was made of a group of tenants in one commit. */
export interface GroupOutcome {
  /** The progress of those that were not overtaken. */
  readonly progress: ReadonlyMap<string, Progress | undefined>;
  readonly overtaken: readonly string[];
}

/** The next events of a tenant, or of the log, and whether there are no more of them. */
export interface NextEvents {
  readonly events: readonly LoggedEvent[];
  readonly isRest: boolean;
}

export type ProgressOf = ReadonlyMap<string, Progress | undefined>;

/** The most events in a commit where nobody waits. Smaller ones cost more: each writes every page that it touches. */
export const MAX_BUILD_EVENTS = 4_096;
/** The most events of one tenant in a commit. */
export const MAX_TENANT_EVENTS = 512;
/** The most events in a commit beside others that wait for theirs. */
export const MAX_GROUP_EVENTS = 256;
/** The most events in a commit while somebody else waits for the lock of the file: few enough for 10 ms. */
export const MAX_SLICE_EVENTS = 96;
const MAX_GROUP_BYTES = 1_048_576;

/** An event would park its tenant, so what the operator has set aside by now must be known. */
const WOULD_PARK = new Error('A tenant would be parked.');

/** Undefined: nothing can be committed to the set any more, since it has a successor or is gone. */
export const controlUnlessLeft = async (set: Pick<ReadModelSet, 'control'>): Promise<Control | undefined> => {
  try {
    const control = await set.control();
    return control.next === undefined ? control : undefined;
  } catch (error) {
    if (codeOf(error) !== 'read_model_set_removed') throw error;
    return undefined;
  }
};

const isContiguous = ({ before = START, events }: TenantEvents, { streams }: LedgerLog): boolean => {
  const last = { tenant: before.tenant, activity: before.activity };
  for (const event of events) {
    const kind = streams.parse(event.stream)?.kind;
    if (kind === undefined || event.revision <= last[kind]) continue;
    if (gapBefore(event, last[kind]) !== undefined) return false;
    last[kind] = event.revision;
  }
  return true;
};

/** Reads at most so many events, or bytes, and tells whether there are more. */
export const readSome = async (
  batches: AsyncIterable<Batch>,
  max: number,
  maxBytes = MAX_GROUP_BYTES,
): Promise<NextEvents> => {
  const events: LoggedEvent[] = [];
  let bytes = 0;
  for await (const batch of batches)
    for (const event of batch) {
      if (events.length === max || bytes >= maxBytes) return { events, isRest: false };
      events.push(event);
      bytes += event.bytes ?? 0;
    }
  return { events, isRest: true };
};

/** At most so many of events that are in memory. */
export const firstOf = (events: Batch, max: number): NextEvents => ({
  events: events.slice(0, max),
  isRest: events.length <= max,
});

interface ProjectionOptions {
  readonly now?: () => string;
  /** Into a build, whose commits cannot be undone. */
  readonly loadsNew?: boolean;
  /** The events of a tenant, where they are in memory. */
  readonly inMemory?: (tenantId: string, before: Progress, upTo: Position) => Promise<Batch | undefined>;
  /** Called with each tenant that it parks, or finds parked when it retries those. */
  readonly onParked?: (tenant: ParkedTenant) => void;
}

/** Reads the next events of tenants. */
const tenantReading = (dependencies: LedgerLog, inMemory: ProjectionOptions['inMemory']) => {
  /** After a gap, the revisions may have begun again. */
  const readStreams = (
    tenantId: string,
    { parked, position, ...last }: Progress,
    upTo: Position,
    max: number,
    maxBytes?: number,
  ) => {
    const after = parked?.cause === 'missing_events' ? position : last;
    // One more tells whether there are more.
    return readSome(dependencies.log.readTenant(tenantId, { after, upTo, max: max + 1 }), max, maxBytes);
  };
  const read = async (
    tenantId: string,
    before: Progress = START,
    upTo: Position,
    max = MAX_TENANT_EVENTS,
  ): Promise<NextEvents> => {
    const found = await inMemory?.(tenantId, before, upTo);
    return found === undefined ? readStreams(tenantId, before, upTo, max) : firstOf(found, max);
  };
  /** Another process may have appended or projected, so only its streams show that a tenant lacks events. */
  const proven = async (tenant: TenantEvents): Promise<TenantEvents> => {
    const { tenantId, before = START, events } = tenant;
    const last = events.at(-1);
    if (last === undefined || isContiguous(tenant, dependencies)) return tenant;
    const all = await readStreams(tenantId, before, last.position, Infinity, Infinity);
    return { ...tenant, events: all.events };
  };
  return { read, proven };
};

/** The tenants that were used last are kept, each with so many documents and ends at most. */
const MAX_TENANTS = 512;
const MAX_KEPT = 256;

/** What one process knows of the tenants of a set, as long as it is so. */
const knownTenants = (collections: readonly Collection[]) => {
  const ofRows = new Set(collections.flatMap(({ name, numbered }) => (numbered === undefined ? [] : name)));
  /** Least recently used first. */
  const tenants = new Map<string, KnownTenant>();
  return {
    find: (tenantId: string): KnownTenant | undefined => tenants.get(tenantId),
    forget: (tenantId: string): boolean => tenants.delete(tenantId),
    /** Takes a tenant out, to change it. */
    take: (tenantId: string, progress: Progress | undefined): KnownTenant => {
      const found = tenants.get(tenantId);
      tenants.delete(tenantId);
      if (found !== undefined && isSameProgress(found.progress, progress)) return found;
      return { progress, slots: new Map(), ends: new Map() };
    },
    /** A row is written once, and a line of one row seldom goes on: neither is needed again soon. */
    keep: (tenantId: string, known: KnownTenant, touched?: Pick<Touched, 'slots' | 'ends'>): void => {
      const { slots, ends } = known;
      touched?.slots.forEach((slot, name) => {
        if (!ofRows.has(slot.collection)) slots.set(name, slot);
      });
      touched?.ends.forEach((slot, name) => {
        if (slot.end.number > 1) ends.set(name, slot);
      });
      if (slots.size > MAX_KEPT) slots.clear();
      if (ends.size > MAX_KEPT) ends.clear();
      tenants.delete(tenantId);
      tenants.set(tenantId, known);
      if (tenants.size <= MAX_TENANTS) return;
      const [oldest = ''] = tenants.keys();
      tenants.delete(oldest);
    },
  };
};

/** A group of tenants on its way into a set. */
interface Group {
  readonly tenants: readonly TenantEvents[];
  readonly to: Head | undefined;
  readonly applying: Applying;
  /** Whether what is set aside is known as of now. */
  readonly mayPark: boolean;
}

const newlyParked = (before: ProgressOf, { tenantId, progress: { parked } }: Applied['commit']) =>
  parked === undefined || parked.event_id === before.get(tenantId)?.parked?.event_id ? [] : [parked];

const isDue = ({ before, events, waiting }: TenantEvents): boolean =>
  waiting !== undefined || (before?.parked === undefined && events.length > 0);

const groupCommitting = (
  set: ReadModelSet,
  apply: ReturnType<typeof eventApplier>,
  known: ReturnType<typeof knownTenants>,
  onParked: (tenant: ParkedTenant) => void,
) => {
  /** What was applied is committed, so it is known from now on. */
  const committed = ({
    commit: { tenantId, progress },
    known: tenant,
    touched,
    changed,
  }: Applied): Progress => {
    for (const slot of changed) slot.stored = slot.document;
    known.keep(tenantId, { ...tenant, progress }, touched);
    return progress;
  };
  return async ({ tenants, to, applying, mayPark }: Group): Promise<'superseded' | GroupOutcome> => {
    const before = new Map(tenants.map((tenant) => [tenant.tenantId, tenant.before]));
    let applied = new Map<string, Applied>();
    const work = async (tenantIds: readonly string[]) => {
      const unmoved = new Set(tenantIds);
      const due = tenants.filter((tenant) => unmoved.has(tenant.tenantId) && isDue(tenant));
      const all = await apply(applying, due);
      applied = new Map(all.map((one) => [one.commit.tenantId, one]));
      const commits = all.map(({ commit }) => commit);
      if (!mayPark && commits.some((commit) => newlyParked(before, commit).length > 0)) throw WOULD_PARK;
      return commits.filter(({ tenantId, progress }) => !isSameProgress(progress, before.get(tenantId)));
    };
    const outcomes = await set.advance(before, work, to).catch((error: unknown) => {
      for (const tenantId of before.keys()) known.forget(tenantId);
      throw error;
    });
    if (outcomes === 'superseded') return outcomes;
    const overtaken = [...before.keys()].filter((tenantId) => outcomes.get(tenantId) === 'overtaken');
    for (const tenantId of overtaken) {
      known.forget(tenantId);
      applied.delete(tenantId);
      before.delete(tenantId);
    }
    const progress = new Map(before);
    for (const [tenantId, one] of applied) progress.set(tenantId, committed(one));
    for (const { commit } of applied.values()) newlyParked(before, commit).forEach(onParked);
    return { progress, overtaken };
  };
};

/** A set, what this process knows of its tenants, and the log that it is made from. */
export type TenantProjection = ReturnType<typeof tenantProjection>;

export const tenantProjection = (
  dependencies: Pick<ReplayDependencies, 'log' | 'streams' | 'projector' | 'program'>,
  set: ReadModelSet,
  { now = isoNow, loadsNew = false, inMemory, onParked = () => undefined }: ProjectionOptions = {},
) => {
  const { streams, projector, program } = dependencies;
  const known = knownTenants(projector.collections);
  const { read, proven } = tenantReading(dependencies, inMemory);
  const advance = groupCommitting(set, eventApplier(set, projector, known.take), known, onParked);
  let applying: Applying | undefined;

  /** Reads anew what the operator has set aside. */
  const renewSetAside = async (): Promise<Applying> =>
    (applying = { projector, streams, program, now, loadsNew, setAside: await readSetAside(dependencies) });

  /** The progress of tenants as this process knows it or, where it does not or must be fresh, as the set says. */
  const progress = async (tenantIds: readonly string[], isFresh = false): Promise<ProgressOf> => {
    const found = new Map(tenantIds.map((id) => [id, known.find(id)?.progress]));
    const asked = isFresh ? tenantIds : tenantIds.filter((id) => known.find(id) === undefined);
    const fresh = asked.length === 0 ? [] : await set.progress(asked);
    for (const [i, tenantId] of asked.entries()) {
      // It never decreases, so a commit of this process may have been later than the read.
      const isOlder = (known.find(tenantId)?.progress?.position ?? '') > (fresh[i]?.position ?? '');
      if (!isOlder) known.keep(tenantId, known.take(tenantId, fresh[i]));
      found.set(tenantId, known.find(tenantId)?.progress);
    }
    return found;
  };

  /**
   * Applies the next events of some tenants in one commit, and moves `to`: everything up to there must be among these
   * events or applied before, or its tenant be parked and in the group.
   */
  const commit = async (group: readonly TenantEvents[], to?: Head): Promise<'superseded' | GroupOutcome> => {
    const tenants = await Promise.all(group.map(proven));
    let current = applying ?? (await renewSetAside());
    for (let mayPark = false; ;)
      try {
        return await advance({ tenants, to, applying: current, mayPark });
      } catch (error) {
        if (error === WOULD_PARK) {
          current = { ...(await renewSetAside()), loadsNew: current.loadsNew };
          mayPark = true;
        } else if (codeOf(error) === 'document_exists' && !current.loadsNew)
          current = { ...current, loadsNew: true };
        else throw error;
      }
  };

  return { set, progress, read, commit, renewSetAside, onParked };
};
