import type { Batch, Head, LoggedEvent, Position } from '../event-log/event-log';
import type { LedgerLog } from '../event-log/streams';
import { codeOf } from '../fault';
import { isApplied, type TenantEvents } from './apply-events';
import {
  controlUnlessLeft,
  MAX_BUILD_EVENTS,
  readSome,
  type NextEvents,
  type TenantProjection,
} from './project-tenants';
import type { LiveProjection } from './show-tenants';

/** The next events after a position, at most this many. */
export type ReadAfter = (after: Position | undefined, max: number) => Promise<NextEvents>;

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
}

export interface FollowOptions {
  /** The most events that the next commit applies. */
  readonly maxEvents?: () => number;
  /** Whether to leave a tenant alone, whose next event this is. */
  readonly rests?: (tenantId: string, next: LoggedEvent) => boolean;
}

/** More are read at once than are applied, since others may have applied most of them. */
const READ_EVENTS = 512;

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
  max: number,
  rests: FollowOptions['rests'] = () => false,
): Promise<Due> => {
  const progress = await projection.progress([...byTenant(read, streams).keys()], true);
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
    else if (!rests(tenantId, next)) group.push({ tenantId, before, events: own });
    else if (restsAt === undefined || next.position < restsAt) restsAt = next.position;
  }
  return { events, group, restsAt };
};

const NOTHING = { events: 0, isEnd: false };

/**
 * Follows the log in its order: skips what the progress of tenants covers, applies the rest, and moves `to`. Any number
 * of processes may do so at once, and others project tenants meanwhile. Each call applies the next events, up to and
 * including a position.
 */
export const logFollower = (
  log: Pick<LedgerLog, 'streams'>,
  readAfter: ReadAfter,
  { maxEvents = () => MAX_BUILD_EVENTS, rests }: FollowOptions = {},
) => {
  /** Where it was last, so that nothing is asked while there is nothing to follow. */
  let known: { readonly projection: TenantProjection; readonly to?: Head | undefined } | undefined;
  return async (projection: TenantProjection, upTo?: Position): Promise<Step> => {
    const control = known?.projection === projection ? known : await controlUnlessLeft(projection.set);
    known = undefined;
    if (control === undefined) return { outcome: 'superseded', ...NOTHING };
    const { to } = control;
    const max = maxEvents();
    const read = await readAfter(to?.position, Math.max(max, READ_EVENTS));
    const wanted = upTo === undefined ? read.events : read.events.filter(({ position }) => position <= upTo);
    if (wanted.length === 0) {
      known = { projection, to };
      return { outcome: 'at_end', events: 0, isEnd: true, to: to?.position };
    }
    const { events, group, restsAt } = await dueOf(log, projection, wanted, max, rests);
    const passed = restsAt === undefined ? events : events.filter(({ position }) => position < restsAt);
    if (group.length + passed.length === 0) return { outcome: 'resting', ...NOTHING };
    const end = headOf(passed.at(-1));
    const outcome = await projection.commit(group, end).catch(busyIfLocked);
    const applied = group.reduce((sum, tenant) => sum + tenant.events.length, 0);
    if (outcome === 'superseded' || outcome === 'busy') return { outcome, ...NOTHING };
    if (outcome.overtaken.length > 0) return { outcome: 'overtaken', ...NOTHING };
    const isEnd = restsAt === undefined && read.isRest && events.length === wanted.length;
    known = { projection, to: end ?? to };
    return { outcome: 'done', events: passed.length, applied, to: known.to?.position, isEnd };
  };
};

/** Reads a log in pieces. */
export const readingInPieces =
  (read: (after: Position | undefined) => AsyncIterable<Batch>): ReadAfter =>
  (after, max) =>
    readSome(read(after), max);

/** Follows the log into the live set, whichever that is. Undefined: there is none. */
export const liveFollower = (
  dependencies: LedgerLog,
  live: LiveProjection,
  options: FollowOptions,
  readAfter = readingInPieces((after) => dependencies.log.readAll({ after })),
) => {
  const follow = logFollower(dependencies, readAfter, options);
  return async (upTo?: Position): Promise<Step | undefined> => {
    const projection = await live.current();
    if (projection === undefined) return undefined;
    const step = await follow(projection, upTo);
    if (step.outcome === 'superseded') live.left(projection);
    return step;
  };
};
