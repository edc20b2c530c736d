import { threadMs } from '../async/clock';
import type { Batch, Head, LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import type { Tail } from '../event-log/tail';
import { codeOf } from '../fault';
import type { ParkedTenant, Progress } from '../read-models/read-models';
import { TIMES } from '../times';
import { isApplied, type TenantEvents } from './apply-events';
import { controlUnlessLeft, type TenantProjection } from './project-tenants';
import type { LiveProjection } from './show-tenants';

/** The next events after a position, at most this many. None: the end of the log. */
export type ReadAfter = (after: Position | undefined, max: number) => Promise<Batch>;

/**
 * Follows the log in its order: skips what the progress of tenants covers, applies the rest, and moves `to`. Any number
 * of processes may do so at once, and others project tenants meanwhile.
 */
export interface LogFollower {
  /** Applies the next events, up to and including a position. Fresh: others may have projected their tenants. */
  step(options?: { readonly upTo?: Position | undefined; readonly isFresh?: boolean }): Promise<Step>;
  /** Goes on until there are no more events up to this position. */
  toEnd(upTo?: Position): Promise<'at_end' | 'superseded'>;
}

/**
 * `at_end`: there is nothing to follow. `resting`: somebody else is probably just projecting what comes next.
 * `overtaken`: another process has committed one of the tenants. `busy`: another process is projecting.
 */
export interface Step {
  readonly outcome: 'done' | 'superseded' | 'at_end' | 'resting' | 'overtaken' | 'busy';
  /** How many events of the log it has passed. */
  readonly events: number;
  /** How many of them it has applied. Others had projected the rest. */
  readonly applied?: number;
  /** Everything up to here is applied. */
  readonly to?: Position | undefined;
  /** There are no more events, as far as it has read. */
  readonly isEnd: boolean;
  /** The tenants parked by this step. */
  readonly parked: readonly ParkedTenant[];
}

export interface FollowOptions {
  /** The most events that one commit applies. */
  readonly maxEvents?: number;
  /** So many are in one commit, however long it takes. */
  readonly minEvents?: number;
  /** How long a commit may take. While it is undefined, nobody waits. */
  readonly sliceMs?: () => number | undefined;
  /** Whether to leave a tenant alone, whose next event this is. */
  readonly rests?: (tenantId: string, next: LoggedEvent, progress: Progress | undefined) => boolean;
  /** Runs after each step of `toEnd`. */
  readonly between?: (step: Step) => Promise<void> | void;
}

const MAX_EVENTS = 4_096;
/** Smaller commits would cost more: each writes every page that it touches. */
const MIN_EVENTS = 32;
const FIRST_EVENTS = 128;
/** More are read at once than are applied, since others may have applied most of them. */
const READ_EVENTS = 512;

/** How many events fit into a slice, as the last ones took. */
const sizing = (options: FollowOptions) => {
  const { maxEvents = MAX_EVENTS, minEvents = MIN_EVENTS, sliceMs = () => undefined } = options;
  let size = Math.min(FIRST_EVENTS, maxEvents);
  return {
    size: (): number => (sliceMs() === undefined ? maxEvents : size),
    took: (events: number, ms: number): void => {
      const fits = Math.round((events * (sliceMs() ?? ms)) / Math.max(ms, 0.1));
      size = Math.min(maxEvents, Math.max(minEvents, Math.min(2 * size, fits)));
    },
  };
};

/** Somebody is probably just projecting a tenant whose next event is young, or whose progress has moved lately. */
export const restingTenants = ({ ageMs }: Pick<Tail, 'ageMs'>) => {
  const seen = new Map<string, { readonly position: Position; readonly movedAt: number }>();
  return (tenantId: string, next: LoggedEvent, progress: Progress | undefined): boolean => {
    const position = progress?.position ?? '';
    const before = seen.get(tenantId);
    const movedAt = before?.position === position ? before.movedAt : before && threadMs();
    const rests = ageMs(next) < TIMES.restMs || threadMs() - (movedAt ?? -Infinity) < TIMES.restMs;
    if (rests) seen.set(tenantId, { position, movedAt: movedAt ?? -Infinity });
    else seen.delete(tenantId);
    return rests;
  };
};

const busyIfLocked = (error: unknown): 'busy' => {
  if (codeOf(error) !== 'read_models_busy') throw error;
  return 'busy';
};

const byTenant = (events: Batch, { parse }: LedgerLog['streams']): ReadonlyMap<string, LoggedEvent[]> => {
  const found = new Map<string, LoggedEvent[]>();
  for (const event of events) {
    const tenantId = parse(event.stream)?.tenantId;
    if (tenantId === undefined) continue;
    const own = found.get(tenantId);
    if (own === undefined) found.set(tenantId, [event]);
    else own.push(event);
  }
  return found;
};

/** What a read of the log asks for. */
interface Due {
  /** Those of the events that are looked at now: at most so many of them are not applied yet. */
  readonly events: Batch;
  /** The tenants to commit. */
  readonly group: readonly TenantEvents[];
  /** Where the first event is of a tenant that rests. */
  readonly restsAt: Position | undefined;
}

const headOf = (event: LoggedEvent | undefined): Head | undefined =>
  event === undefined ? undefined : { position: event.position, eventId: event.id };

/** Of the events that come next, which tenants are to be committed. */
const dueOf = async (
  { streams }: Pick<LedgerLog, 'streams'>,
  projection: TenantProjection,
  read: Batch,
  { rests = () => false, isFresh, max }: Pick<FollowOptions, 'rests'> & { isFresh: boolean; max: number },
): Promise<Due> => {
  const progress = await projection.progress([...byTenant(read, streams).keys()], isFresh);
  const isDue = (event: LoggedEvent): boolean => {
    const owner = streams.parse(event.stream);
    return owner !== undefined && !isApplied(event, owner.kind, progress.get(owner.tenantId));
  };
  const due = read.filter(isDue).slice(0, max + 1);
  const tooMany = due.length > max ? due.pop() : undefined;
  const events = tooMany === undefined ? read : read.slice(0, read.indexOf(tooMany));
  const group: TenantEvents[] = [];
  let restsAt: Position | undefined;
  for (const [tenantId, own] of byTenant(due, streams)) {
    const before = progress.get(tenantId);
    const [next] = own as [LoggedEvent];
    if (before?.parked !== undefined) group.push({ tenantId, before, events: [] });
    else if (!rests(tenantId, next, before)) group.push({ tenantId, before, events: own });
    else if (restsAt === undefined || next.position < restsAt) restsAt = next.position;
  }
  return { events, group, restsAt };
};

const NOTHING = { events: 0, isEnd: false, parked: [] };

export const logFollower = (
  log: Pick<LedgerLog, 'streams'>,
  projection: TenantProjection,
  readAfter: ReadAfter,
  options: FollowOptions = {},
): LogFollower => {
  const { size, took } = sizing(options);
  let known: { readonly to?: Head | undefined } | undefined;

  const stepOn: LogFollower['step'] = async ({ upTo, isFresh = true } = {}) => {
    known ??= await controlUnlessLeft(projection.set);
    if (known === undefined) return { outcome: 'superseded', ...NOTHING };
    const { to } = known;
    const began = threadMs();
    const max = size();
    const asked = Math.max(max, READ_EVENTS);
    const read = await readAfter(to?.position, asked);
    const wanted = upTo === undefined ? read : read.filter(({ position }) => position <= upTo);
    if (wanted.length === 0) return { ...NOTHING, outcome: 'at_end', isEnd: true, to: to?.position };
    const { events, group, restsAt } = await dueOf(log, projection, wanted, { ...options, isFresh, max });
    const passed = restsAt === undefined ? events : events.filter(({ position }) => position < restsAt);
    if (group.length + passed.length === 0) return { outcome: 'resting', ...NOTHING };
    const end = headOf(passed.at(-1));
    const outcome = await projection.commit(group, end).catch(busyIfLocked);
    const applied = group.reduce((sum, tenant) => sum + tenant.events.length, 0);
    if (applied > 0) took(applied, threadMs() - began);
    known = undefined;
    if (outcome === 'superseded' || outcome === 'busy') return { outcome, ...NOTHING };
    const { parked, overtaken } = outcome;
    if (overtaken.length > 0) return { ...NOTHING, outcome: 'overtaken', parked };
    known = { to: end ?? to };
    const isEnd = restsAt === undefined && read.length < asked && events.length === wanted.length;
    return { outcome: 'done', events: passed.length, applied, to: known.to?.position, isEnd, parked };
  };

  /** After a failure it looks anew: the set may be gone, or found to be damaged. */
  const step: LogFollower['step'] = (which) =>
    stepOn(which).catch((error: unknown) => {
      known = undefined;
      throw error;
    });

  const toEnd: LogFollower['toEnd'] = async (upTo) => {
    for (;;) {
      const done = await step({ upTo, isFresh: false });
      await options.between?.(done);
      if (done.outcome === 'at_end' || done.outcome === 'superseded') return done.outcome;
    }
  };

  return { step, toEnd };
};

/** A read ends here, whatever the number of its events. */
const MAX_BYTES = 4_194_304;

/** Reads a log in pieces. What a read has returned beyond a piece is kept for the next one. */
export const readingInPieces = (
  read: (after: Position | undefined) => AsyncIterable<Batch> | Iterable<Batch>,
): ReadAfter => {
  let start: Position | undefined;
  let known: Batch = [];
  const knownAfter = (after: Position | undefined): Batch => {
    if (after === start) return known;
    const at = known.findIndex(({ position }) => position === after);
    return at < 0 ? [] : known.slice(at + 1);
  };
  const readOn = async (after: Position | undefined, max: number): Promise<Batch> => {
    const events: LoggedEvent[] = [];
    let bytes = 0;
    for await (const batch of read(after)) {
      events.push(...batch);
      for (const event of batch) bytes += event.bytes ?? 0;
      if (events.length >= max || bytes >= MAX_BYTES) break;
    }
    return events;
  };
  return async (after, max) => {
    const kept = knownAfter(after);
    // Fewer than asked for are the end of the log.
    const more = kept.length >= max ? [] : await readOn(kept.at(-1)?.position ?? after, max - kept.length);
    [start, known] = [after, more.length === 0 ? kept : [...kept, ...more]];
    return known.slice(0, max);
  };
};

/** Follows the log into the live set, whichever that is. Undefined: there is none. */
export const liveFollower = (
  dependencies: LedgerLog,
  live: LiveProjection,
  options: FollowOptions,
  readAfter = readingInPieces((after) => dependencies.log.readAll({ after })),
) => {
  let following: { readonly projection: TenantProjection; readonly follower: LogFollower } | undefined;
  return async (which?: Parameters<LogFollower['step']>[0]): Promise<Step | undefined> => {
    const projection = await live.current();
    if (projection === undefined) return undefined;
    if (following?.projection !== projection)
      following = { projection, follower: logFollower(dependencies, projection, readAfter, options) };
    const step = await following.follower.step(which);
    if (step.outcome === 'superseded') live.left(projection);
    return step;
  };
};
