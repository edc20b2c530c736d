import { pause } from '../async/clock';
import type { Tail } from '../event-log/tail';
import type { Lease } from '../read-models/read-models';
import { TIMES } from '../times';
import { liveFollower, readingInPieces, type FollowOptions, type ReadAfter } from './follow-log';
import { retryDue } from './parked-tenants';
import {
  controlUnlessLeft,
  firstOf,
  MAX_GROUP_EVENTS,
  MAX_TENANT_EVENTS,
  type ReplayDependencies,
  type TenantProjection,
} from './project-tenants';
import { mustHoldEventsOf } from './rebuild';
import type { LiveProjection } from './show-tenants';

export interface LeasedFollowing extends ReplayDependencies {
  readonly lease: Lease;
  readonly live: LiveProjection;
  readonly tail: Tail;
  /** Whether this process is just projecting a tenant, because somebody waits for it. */
  readonly isWaitedFor: (tenantId: string) => boolean;
  /** Called with failures that are retried. With `log_set_back`, the process should end. */
  readonly onError: (error: unknown) => void;
  /** Makes the first set of this version of the program. */
  readonly buildFirst: () => Promise<unknown>;
}

/** From memory or, where the tail does not go back that far, from the log. */
const readingAfter = ({ tail, log }: LeasedFollowing): ReadAfter => {
  const readLog = readingInPieces((after) => log.readAll({ after }));
  return async (after, max) => {
    const newest = tail.after(after);
    return newest === undefined ? readLog(after, max) : firstOf(newest, max);
  };
};

/** Before anything is applied: whether the log is the one that the set is made from, and who has become readable. */
const begin = async ({ log }: LeasedFollowing, projection: TenantProjection): Promise<void> => {
  const { set } = projection;
  const control = await controlUnlessLeft(set);
  if (control === undefined) return;
  await mustHoldEventsOf(log, { set, control });
  await retryDue(projection);
};

const followWhileHeld = async (dependencies: LeasedFollowing, signal: AbortSignal): Promise<void> => {
  const { live, tail, isWaitedFor, buildFirst } = dependencies;
  const options: FollowOptions = {
    maxEvents: () => MAX_GROUP_EVENTS,
    // Somebody is probably just projecting it.
    rests: (tenantId, next) => isWaitedFor(tenantId) || tail.ageMs(next) < TIMES.restMs,
  };
  const follow = liveFollower(dependencies, live, options, readingAfter(dependencies));
  let begun: TenantProjection | undefined;
  while (!signal.aborted) {
    const projection = await live.current();
    if (projection !== undefined && projection !== begun) await begin(dependencies, projection);
    begun = projection;
    const step = await follow();
    if (step === undefined) await buildFirst();
    if (step === undefined || step.outcome === 'superseded') continue;
    if (step.outcome === 'at_end') await tail.more(TIMES.renewMs, signal);
    // Where all is shown that is old enough, only the position is left to move, and nobody waits for that.
    const isAhead = step.outcome === 'done' && step.applied === 0 && step.events < MAX_TENANT_EVENTS;
    if (step.outcome !== 'done' || step.isEnd || isAhead)
      await pause(isAhead ? TIMES.restMs : TIMES.restMs / 2, signal);
  }
};

/** Follows the log in the process that holds the lease. Returns how to stop. */
export const startFollowing = (dependencies: LeasedFollowing): (() => Promise<void>) => {
  const { lease, onError } = dependencies;
  const ending = new AbortController();
  const whileHeld = async (): Promise<void> => {
    const taken = new AbortController();
    const renew = (): Promise<void> =>
      lease.hold().then((isHeld) => (isHeld ? undefined : taken.abort()), onError);
    const renewing = setInterval(() => void renew(), TIMES.renewMs);
    try {
      await followWhileHeld(dependencies, AbortSignal.any([ending.signal, taken.signal]));
    } finally {
      clearInterval(renewing);
    }
  };
  const run = async (): Promise<void> => {
    for (; !ending.signal.aborted; await pause(TIMES.retryMs, ending.signal))
      try {
        if (await lease.hold()) await whileHeld();
      } catch (error) {
        if (!ending.signal.aborted) onError(error);
      }
    await lease.release().catch(onError);
  };
  const running = run();
  return () => {
    ending.abort();
    return running;
  };
};
