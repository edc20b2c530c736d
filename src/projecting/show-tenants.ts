import { monotonicMs, pause, threadMs, yieldToEventLoop } from '../async/clock';
import type { Position } from '../event-log/event-log';
import { codeOf } from '../fault';
import type { Progress } from '../read-models/read-models';
import { TIMES } from '../times';
import type { TenantEvents } from './apply-events';
import {
  MAX_GROUP_EVENTS,
  MAX_SLICE_EVENTS,
  controlUnlessLeft,
  tenantProjection,
  type ReplayDependencies,
  type TenantProjection,
} from './project-tenants';

/** The projection into the live set, whichever that is. */
export interface LiveProjection {
  /** Undefined: there is no live set. */
  current(): Promise<TenantProjection | undefined>;
  /** It has a successor. */
  left(projection: TenantProjection): void;
}

export const liveProjection = (
  dependencies: ReplayDependencies,
  options?: Parameters<typeof tenantProjection>[2],
): LiveProjection => {
  let known: TenantProjection | undefined;
  return {
    current: async () => {
      if (known !== undefined) return known;
      const live = await dependencies.readModels.live();
      return (known ??= live && tenantProjection(dependencies, live.set, options));
    },
    left: (projection) => {
      if (projection === known) known = undefined;
    },
  };
};

/** Up to which position each tenant is wanted. */
export type Wanted = ReadonlyMap<string, Position>;

export const NOTHING_SHOWN: ShownTenant = { outcome: 'more', position: '' };

/** What came of a tenant, and up to where it is shown. */
export interface ShownTenant {
  /** `parked`: it stays behind. `more`: another commit is needed. `overtaken`: another process is committing it. */
  readonly outcome: 'shown' | 'parked' | 'more' | 'overtaken';
  readonly position: Position;
}

const outcomeOf = (progress: Progress | undefined, wanted: Position): ShownTenant => {
  const { position = '', parked } = progress ?? {};
  if (position >= wanted) return { outcome: 'shown', position };
  return { outcome: parked === undefined ? 'more' : 'parked', position };
};

interface GroupOptions {
  /** The most events in a commit. */
  readonly maxEvents?: number;
  /** Leaves the lock of the file free as long as it held it. */
  readonly isAtEase?: boolean;
}

/** Projects tenants up to the positions that are wanted, as one group in one commit. */
export const showGroup = async (
  { set, progress: progressOf, read, commit }: TenantProjection,
  wanted: Wanted,
  { maxEvents = MAX_GROUP_EVENTS, isAtEase = false }: GroupOptions = {},
): Promise<'superseded' | ReadonlyMap<string, ShownTenant>> => {
  const max = Math.ceil(maxEvents / wanted.size);
  const progress = await progressOf([...wanted.keys()]);
  const shown = new Map<string, ShownTenant>();
  for (const [tenantId, position] of wanted) shown.set(tenantId, outcomeOf(progress.get(tenantId), position));
  const withOutcome = (outcome: ShownTenant['outcome']) =>
    [...wanted].filter(([tenantId]) => shown.get(tenantId)?.outcome === outcome);
  // These were committed before: perhaps by another process, and to a set that had a successor before the write.
  if (withOutcome('shown').length > 0 && (await controlUnlessLeft(set)) === undefined) return 'superseded';
  const behind = withOutcome('more');
  if (behind.length === 0) return shown;
  const readOne = async ([tenantId, position]: readonly [string, Position]): Promise<TenantEvents> => {
    const before = progress.get(tenantId);
    return { tenantId, before, events: (await read(tenantId, before, position, max)).events };
  };
  const group = await Promise.all(behind.map(readOne));
  const began = threadMs();
  const done = await commit(group);
  if (isAtEase) await pause(threadMs() - began);
  if (done === 'superseded') return done;
  for (const [tenantId, position] of behind)
    shown.set(tenantId, outcomeOf(done.progress.get(tenantId), position));
  for (const tenantId of done.overtaken) shown.set(tenantId, { outcome: 'overtaken', position: '' });
  return shown;
};

/** Who waits until a tenant is shown. */
interface Waiter {
  readonly tenantId: string;
  readonly position: Position;
  /** On the monotonic clock. */
  readonly deadline: number;
  commits: number;
  overtaken: number;
  readonly tell: (isShown: boolean) => void;
}

/**
 * More than one event of each tenant of a group fit into its commit. A tenant that needs more commits is left to whoever
 * follows the log.
 */
const AT_ONCE = { maxTenants: 64, maxEvents: MAX_GROUP_EVENTS, maxCommits: 4 };

/** Few tenants, so that each is finished soon. */
const AT_EASE = { maxTenants: 3, maxEvents: MAX_SLICE_EVENTS, maxCommits: Infinity };

interface ShowingOptions {
  readonly onError: (error: unknown) => void;
  /** In as many small commits as it takes, each followed by a pause as long: others need the lock of the file too. */
  readonly isAtEase?: boolean;
}

/** Resolves to whether the live set shows a tenant up to a position in time. */
export type Show = (tenantId: string, position: Position, withinMs: number) => Promise<boolean>;

const wantedOf = (waiters: readonly Waiter[]): Wanted => {
  const wanted = new Map<string, Position>();
  for (const { tenantId, position } of waiters)
    if (position > (wanted.get(tenantId) ?? '')) wanted.set(tenantId, position);
  return wanted;
};

/**
 * Those that wait, in lanes: that of a contested tenant, or the one of all others (''). A lane projects all that wait as
 * one group, then those that came meanwhile.
 */
const waitingLanes = (project: (waiters: readonly Waiter[]) => Promise<void>, maxTenants: number) => {
  const contested = new Map<string, number>();
  const lanes = new Map<string, Waiter[]>();

  const laneOf = (tenantId: string): string => {
    if ((contested.get(tenantId) ?? -Infinity) > monotonicMs()) return tenantId;
    contested.delete(tenantId);
    return '';
  };
  /** The waiters of the first tenants of a lane. */
  const take = (lane: Waiter[]): readonly Waiter[] => {
    const now = monotonicMs();
    const tenants = new Set<string>();
    const taken: Waiter[] = [];
    for (const waiter of lane.splice(0))
      if (waiter.deadline <= now) waiter.tell(false);
      else if (tenants.size < maxTenants || tenants.has(waiter.tenantId)) {
        tenants.add(waiter.tenantId);
        taken.push(waiter);
      } else lane.push(waiter);
    return taken;
  };
  const run = async (name: string, lane: Waiter[]): Promise<void> => {
    // What is asked for in the same turn is one group.
    await yieldToEventLoop();
    while (lane.length > 0) {
      const waiters = take(lane);
      if (waiters.length > 0) await project(waiters);
    }
    lanes.delete(name);
  };
  const add = (waiter: Waiter): void => {
    const name = laneOf(waiter.tenantId);
    const lane = lanes.get(name);
    if (lane !== undefined) return void lane.push(waiter);
    const begun = [waiter];
    lanes.set(name, begun);
    void run(name, begun);
  };
  return {
    add,
    contest: (tenantId: string): void => void contested.set(tenantId, monotonicMs() + TIMES.contestedMs),
  };
};

/**
 * Projects the tenants that somebody waits for. A tenant that another process commits too is a group of its own for a
 * while, so that nobody else waits for it.
 */
export const showing = (live: LiveProjection, options: ShowingOptions): Show => {
  const { onError, isAtEase = false } = options;
  const { maxTenants, maxEvents, maxCommits } = isAtEase ? AT_EASE : AT_ONCE;
  let failedAt = -Infinity;

  const judge = (waiter: Waiter, { outcome, position }: ShownTenant): void => {
    waiter.commits += 1;
    if (position >= waiter.position) return waiter.tell(true);
    if (outcome === 'parked') return waiter.tell(false);
    if (outcome === 'more') return waiter.commits >= maxCommits ? waiter.tell(false) : add(waiter);
    waiter.overtaken += 1;
    // At first, only its progress may have been out of date.
    if (waiter.overtaken === 1 || isAtEase) return add(waiter);
    contest(waiter.tenantId);
    setTimeout(add, TIMES.conflictPauseMs * (0.25 + 0.75 * Math.random()), waiter);
  };
  const show = async (waiters: readonly Waiter[]): Promise<void> => {
    const projection = await live.current();
    if (projection === undefined) return waiters.forEach(({ tell }) => tell(false));
    const shown = await showGroup(projection, wantedOf(waiters), { maxEvents, isAtEase });
    if (shown === 'superseded') {
      live.left(projection);
      return waiters.forEach(add);
    }
    for (const waiter of waiters) judge(waiter, shown.get(waiter.tenantId) ?? NOTHING_SHOWN);
  };
  const failed = (waiters: readonly Waiter[], error: unknown): void => {
    if (codeOf(error) === 'read_models_busy')
      return void setTimeout(() => waiters.forEach(add), TIMES.busyRetryMs);
    if (codeOf(error) === 'read_models_unavailable') failedAt = monotonicMs();
    onError(error);
    for (const { tell } of waiters) tell(false);
  };
  const { add, contest } = waitingLanes(
    (waiters) => show(waiters).catch((error: unknown) => failed(waiters, error)),
    maxTenants,
  );

  return (tenantId, position, withinMs) => {
    const now = monotonicMs();
    if (now - failedAt < TIMES.noAnswerMs) return Promise.resolve(false);
    return new Promise((tell) =>
      add({ tenantId, position, deadline: now + withinMs, commits: 0, overtaken: 0, tell }),
    );
  };
};

/** The same, and which tenants somebody waits for in this process. */
export const knowingWaiters = (show: Show) => {
  const waiting = new Map<string, number>();
  return {
    isWaitedFor: (tenantId: string): boolean => waiting.has(tenantId),
    show: async (...[tenantId, position, withinMs]: Parameters<Show>): Promise<boolean> => {
      waiting.set(tenantId, (waiting.get(tenantId) ?? 0) + 1);
      try {
        return await show(tenantId, position, withinMs);
      } finally {
        const left = (waiting.get(tenantId) ?? 1) - 1;
        if (left > 0) waiting.set(tenantId, left);
        else waiting.delete(tenantId);
      }
    },
  };
};
